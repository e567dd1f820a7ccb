"""Airflow's users and their rights, for pages that its api-server serves."""

from airflow.api_fastapi.app import get_auth_manager
from airflow.api_fastapi.auth.managers.models.resource_details import DagAccessEntity
from airflow.api_fastapi.core_api.security import GetUserDep, get_user, requires_access_dag

__all__ = ["DagAccessEntity", "GetUserDep", "get_auth_manager", "get_user", "requires_access_dag"]
