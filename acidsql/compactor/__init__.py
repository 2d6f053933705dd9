"""The compactor: tables stay fast for years because somebody puts their small files together.

``plan`` says which files of a directory become which, ``run`` has them written, ``compaction`` is one compaction inside
its transaction. The services around it: ``initiator`` asks for compactions, ``worker`` carries them out, ``cleaner``
removes what they replace, ``housekeeper`` ends what is dead; ``service`` runs them.
"""

from acidsql.compactor.compaction import WorkerContext
from acidsql.compactor.service import Compactor, CompactorStatus, RoundResult

__all__ = ["Compactor", "CompactorStatus", "RoundResult", "WorkerContext"]
