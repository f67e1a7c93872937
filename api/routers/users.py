"""User accounts, for administrators."""

from fastapi import APIRouter, Response

from api.context import ApiContext
from api.pagination import Cursor, PageSize
from api.responses import json_response
from api.schemas.base import Id
from api.schemas.identity import CreateUser, PatchUser, UserItem, UserPage
from api.security.access import API
from api.security.authentication import SignedInCaller
from api.security.guard import ApiActor, GuardedRoute
from codehub.services import users
from codehub.services.disabled_users import stop_workspaces_of_disabled
from codehub.services.users import UserChange, UserView

router = APIRouter(prefix=f"{API}/admin/users", route_class=GuardedRoute, tags=["administration"])


@router.get("", response_model=UserPage, summary="List user accounts")
async def list_users(context: ApiContext, cursor: Cursor = None, limit: PageSize = 50) -> Response:
    """Return accounts, by name."""
    after = cursor.replace("\0", "") if cursor else None
    found = await users.list_users(context.database, after=after, limit=limit)
    last = found[-1].username if len(found) == limit else None
    return json_response(UserPage(items=[_item(user) for user in found], next_cursor=last))


@router.post("", status_code=201, response_model=UserItem, summary="Add a user account")
async def add_user(form: CreateUser, by: ApiActor, context: ApiContext) -> Response:
    """The user should change the password after the first sign-in."""
    user = await users.add_user(
        context.database,
        context.passwords,
        form.username,
        form.password,
        role=form.role,
        single=context.options.unsafe_workspaces,
        by=by,
        now=context.now(),
    )
    return json_response(_item(user), 201, Location=f"{API}/admin/users/{user.id}")


@router.get("/{user_id}", response_model=UserItem, summary="Read a user account")
async def read_user(user_id: Id, context: ApiContext) -> Response:
    """Return one account."""
    return json_response(_item(await users.load_user(context.database, user_id)))


@router.patch("/{user_id}", response_model=UserItem, summary="Change a user account")
async def change_user(
    user_id: Id, form: PatchUser, caller: SignedInCaller, by: ApiActor, context: ApiContext
) -> Response:
    """Disabling a user or setting a password ends all sessions and tokens at once.

    Disabling also stops the workspaces.
    """
    password = form.password
    password_hash = None if password is None else await users.hash_new_password(context.passwords, password)
    change = UserChange(form.role, form.disabled, password_hash)
    user = await users.change_user(context.database, user_id, change, by=by, now=context.now())
    if form.disabled or form.password is not None:
        context.hub.end_user(user_id)
    if form.disabled:
        # If this process dies first, the next sweep does it.
        asked = await stop_workspaces_of_disabled(
            context.database, context=context.request_by(caller), owner_user_id=user_id
        )
        for each in asked:
            context.waker.wake(each.workspace_id, each.owner_id)
    return json_response(_item(user))


def _item(user: UserView) -> UserItem:
    return UserItem.model_validate(user, from_attributes=True)
