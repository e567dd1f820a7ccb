"""The refusals of a connection, in words for whoever made it."""

from airflow.sdk.exceptions import AirflowException, AirflowFailException


class ConnectionRefused(AirflowFailException):
    """A connection is missing or of another type than the contract needs. No retry cures it."""


class AccountNotGiven(AirflowException):
    """A hook could not get the account that a connection asks for, such as a token. A retry may."""
