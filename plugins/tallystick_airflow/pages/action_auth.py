"""The right to act on a page: a user of Airflow who may trigger the contract's compensation DAG, by a form of our own
page.

The form carries a token that is bound to its user, so that another site's form, which the browser would send with the
user's cookie, changes nothing.
"""

from functools import cache

from airflow.configuration import conf
from fastapi import HTTPException, Request
from itsdangerous import BadSignature, URLSafeTimedSerializer

from tallystick_airflow.internals.access import DagAccessEntity, GetUserDep, requires_access_dag
from tallystick_airflow.pages.auth import require_read
from tallystick_airflow.pages.teams import team

TOKEN_SECONDS_MAX = 8 * 3600
"""A page may stay open for a shift."""


def require_action_permission(request: Request, user: GetUserDep, contract_name: str) -> None:
    """Let the user pass who may read the contract and trigger its compensation. Raises HTTPException 403."""
    require_read(request, user, contract_name)
    requires_access_dag("POST", DagAccessEntity.RUN, team().compensation_of(contract_name))(request, user)


def may_act(request: Request, user: GetUserDep, contract_name: str) -> bool:
    """The same as a question."""
    try:
        require_action_permission(request, user, contract_name)
    except HTTPException:
        return False
    return True


def form_token(user: GetUserDep) -> str:
    """Return the token that a form of this user carries."""
    return str(_signer().dumps(user.get_id()))


def require_token(user: GetUserDep, token: str) -> None:
    """Let the form pass that our page gave this user. Raises HTTPException 403."""
    try:
        whose = _signer().loads(token, max_age=TOKEN_SECONDS_MAX)
    except BadSignature:
        whose = None
    if whose != user.get_id():
        raise HTTPException(403, "This form is too old, or of another page. Load the page again and send its form.")


@cache
def _signer() -> URLSafeTimedSerializer:
    """By the secret that Airflow's api-servers share."""
    return URLSafeTimedSerializer(conf.get_mandatory_value("api", "secret_key"), salt="tallystick-acting")
