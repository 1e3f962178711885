"""ceph-volume tablestore: OSDs of TableStore, in a directory or on a device."""
from .main import TableStore

__all__ = ["TableStore"]
