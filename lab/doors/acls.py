"""What `tallystick grants --for kafka` prints, applied to a broker as it is: each line as its own tool reads it."""

import shlex
from argparse import ArgumentParser

from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from lab.servers.process import wait_until


def all_acls(text: str) -> list[AclBinding]:
    """Return the bindings of all commands, each once."""
    commands = [line for line in text.splitlines() if not line.startswith("#")]
    return list({str(acl): acl for command in commands for acl in acls_of(command)}.values())


def acls_of(command: str) -> list[AclBinding]:
    """Return the bindings of one command, one for each operation."""
    parser = ArgumentParser()
    for flag in ("--add", "--cluster"):
        parser.add_argument(flag, action="store_true")
    for name in ("--bootstrap-server", "--command-config", "--allow-principal", "--topic"):
        parser.add_argument(name)
    parser.add_argument("--transactional-id")
    parser.add_argument("--operation", action="append")
    given = parser.parse_args(shlex.split(command)[1:])
    kinds = {"topic": ResourceType.TOPIC, "transactional_id": ResourceType.TRANSACTIONAL_ID}
    ((kind, name),) = [(of, getattr(given, one)) for one, of in kinds.items() if getattr(given, one)] or [
        (ResourceType.BROKER, "kafka-cluster")
    ]
    operations = {one.name.replace("_", "").lower(): one for one in AclOperation}
    return [
        AclBinding(
            kind,
            name,
            ResourcePatternType.LITERAL,
            given.allow_principal,
            "*",
            operations[operation.lower()],
            AclPermissionType.ALLOW,
        )
        for operation in given.operation
    ]


def grant(admin: AdminClient, *acls: AclBinding) -> None:
    """Add them, and return once the broker goes by them."""
    for done in admin.create_acls(list(acls)).values():
        done.result(30)
    wait_until(lambda: all(len(standing(admin, acl)) == 1 for acl in acls), what="the rights to be known")


def revoke(admin: AdminClient, acl: AclBinding) -> None:
    """Take one away, and return once the broker goes by that."""
    assert len(admin.delete_acls([only(acl)])[only(acl)].result(30)) == 1
    wait_until(lambda: not standing(admin, acl), what="the right to be gone")


def standing(admin: AdminClient, acl: AclBinding) -> list[AclBinding]:
    """Return it where it stands."""
    found: list[AclBinding] = admin.describe_acls(only(acl)).result(30)
    return found


def only(acl: AclBinding) -> AclBindingFilter:
    """Return the filter that is this one."""
    named = (acl.restype, acl.name, acl.resource_pattern_type, acl.principal, acl.host, acl.operation)
    return AclBindingFilter(*named, acl.permission_type)
