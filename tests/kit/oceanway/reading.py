"""Owner reads in tests: the real tokens and checks, without a network.

```python
serving = new_serving("gateway")
register(serving, pool)
reader = local_reader(serving, workload="work.metering")
```
"""

from __future__ import annotations

from functools import cache
from typing import Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from oceanway.reads.client import LocalReader
from oceanway.reads.server import Serving
from seapost.transport.token import TokenSigner, TokenVerifier

ISSUER: Final = "oceanway"


@cache
def signing_key() -> Ed25519PrivateKey:
    """The key of every workload of this test process."""
    return Ed25519PrivateKey.generate()


def new_signer(workload: str) -> TokenSigner:
    """Make the identity of a caller, such as `serve.billing` or `work.metering`."""
    return TokenSigner(signing_key(), issuer=ISSUER, workload=workload)


def new_verifier() -> TokenVerifier:
    """Make what every owner of this test process believes."""
    return TokenVerifier([signing_key().public_key()], issuer=ISSUER)


def new_serving(owner: str) -> Serving:
    """Make an owner without operations; its `register(serving, pool)` adds them."""
    return Serving(owner, verifier=new_verifier())


def local_reader(*servings: Serving, workload: str) -> LocalReader:
    """Make a reader of these owners for one caller."""
    return LocalReader(servings, signer=new_signer(workload))
