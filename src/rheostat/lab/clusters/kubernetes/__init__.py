"""Kubernetes on this machine, without images: a real control plane, and a kubelet that runs pods as processes.

A Go main beside these files is etcd, API server and scheduler in one binary, built once into the cache.

| file | what |
|---|---|
| `api.py` | requests to the API server |
| `kubelet.py` | nodes whose pods are processes |
| `cluster.py` | starts all of it |
"""
