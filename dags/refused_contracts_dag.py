"""Holds no DAG: it fails to import while a contract file is refused, so that Airflow shows file and fault.

A file of its own, since Airflow takes every DAG of a file with an import error out of service, and the other contracts
must go on. Seen under Import Errors on the start page, by `airflow dags list-import-errors` (exit 1, for the build) and
at /api/v2/importErrors.
"""

from tallystick.contract.contract import ContractRefused
from tallystick_airflow.contract_files import contracts_folder, read_contract_files

refused = read_contract_files(contracts_folder(__file__)).refused
if refused:
    raise ContractRefused("\n".join(refused))
