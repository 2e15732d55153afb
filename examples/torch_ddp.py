# examples/torch_ddp.py - a script for DistributedDataParallel. One import has changed.
"""tools/launch/local 2 python3 examples/torch_ddp.py, or torchrun where it starts (not Debian's)"""
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn

# from torch.nn.parallel import DistributedDataParallel as DDP
from poseidon.torch import DistributedDataParallel as DDP

dist.init_process_group("gloo")
torch.manual_seed(1)
model = DDP(nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 2)))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)

generator = torch.Generator().manual_seed(dist.get_rank())
for step in range(200):
    x = torch.randn(32, 20, generator=generator)
    y = (x.sum(1) > 0).long()
    optimizer.zero_grad()
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
if dist.get_rank() == 0:
    print(f"loss {loss.item():.4f}", sorted(model.state_dict()))
dist.barrier()
