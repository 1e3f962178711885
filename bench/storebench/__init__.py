"""./run bench: TableStore beside Ceph's other object stores."""
