"""Accounts, for administrators."""

from uuid import UUID

from fastapi import APIRouter, Response

from api.access import API
from api.answers import answer
from api.context import Provided
from api.guard import GuardedRoute
from api.routers.workspaces import Cursor, PageSize
from api.schemas.base import Id
from api.schemas.identity import CreateUser, PatchUser, UserItem, UserPage
from codehub.services import users
from codehub.services.passwords import check_password_rules
from codehub.services.users import UserView

router = APIRouter(prefix=f"{API}/admin/users", route_class=GuardedRoute, tags=["administration"])


@router.get("", response_model=UserPage, summary="All accounts")
async def list_users(context: Provided, cursor: Cursor = None, limit: PageSize = 50) -> Response:
    """By name."""
    after = cursor.replace("\0", "") if cursor else None
    found = await users.list_users(context.database, after=after, limit=limit)
    last = found[-1].username if len(found) == limit else None
    return answer(UserPage(items=[_item(user) for user in found], next_cursor=last))


@router.post("", status_code=201, response_model=UserItem, summary="Add an account")
async def add_user(form: CreateUser, context: Provided) -> Response:
    """Whoever it is for should change the password."""
    user = await users.add_user(
        context.database, context.passwords, form.username, form.password, role=form.role, now=context.now()
    )
    return answer(_item(user), 201, Location=f"{API}/admin/users/{user.id}")


@router.get("/{user_id}", response_model=UserItem, summary="Read an account")
async def read_user(user_id: Id, context: Provided) -> Response:
    """One account."""
    return answer(_item(await users.load_user(context.database, user_id)))


@router.patch("/{user_id}", response_model=UserItem, summary="Change an account")
async def change_user(user_id: Id, form: PatchUser, context: Provided) -> Response:
    """Disabling ends all sessions and tokens at once; so does a new password, but for the tokens."""
    if form.password is not None:
        # Before anything is written: a refused request changes nothing.
        check_password_rules(form.password)
    user = await users.load_user(context.database, user_id)
    if form.role is not None:
        user = await users.set_role(context.database, user_id, form.role)
    if form.disabled is not None:
        user = await _set_disabled(context, user_id, disabled=form.disabled)
    if form.password is not None:
        user = await users.set_password(
            context.database, context.passwords, user_id, form.password, context.now()
        )
    if form.disabled or form.password is not None:
        context.hub.end_user(user_id)
    return answer(_item(user))


async def _set_disabled(context: Provided, user_id: UUID, *, disabled: bool) -> UserView:
    if disabled:
        return await users.disable_user(context.database, user_id, now=context.now())
    return await users.enable_user(context.database, user_id)


def _item(user: UserView) -> UserItem:
    return UserItem.model_validate(user, from_attributes=True)
