"""The rules of repairs: what may be repaired, who has to agree, and how an effect must look. Pure."""
