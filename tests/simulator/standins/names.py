"""Where the simulator asks a contract for its name."""

from tallystick.contract.contract import Contract


def name_of(contract: Contract) -> str:
    return contract.name
