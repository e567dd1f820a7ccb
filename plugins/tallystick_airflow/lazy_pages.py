"""The pages as an app that is loaded when the first reader comes: every process of Airflow loads plugins, few serve."""

from starlette.types import Receive, Scope, Send


async def pages(scope: Scope, receive: Receive, send: Send) -> None:
    """Hand a request on to the pages."""
    from tallystick_airflow.pages.app import app  # half a second of imports, in the api-server alone
    from tallystick_airflow.pages.teams import page_of_team

    with page_of_team(scope) as of_team:
        await app(of_team, receive, send)
