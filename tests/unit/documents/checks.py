"""The keys that a schema's model has."""

from pydantic import BaseModel


def keys_of(model: type[BaseModel]) -> set[str]:
    return {field.alias or name for name, field in model.model_fields.items()}
