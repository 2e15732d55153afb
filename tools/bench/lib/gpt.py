# tools/bench/lib/gpt.py - a small GPT, whose loss is what its forward pass returns: of 52 parameters and 3.2 million values, if nothing else is asked for.
import torch
import torch.nn.functional as F
from torch import nn

LAYERS, WIDTH, HEADS, VOCABULARY, LENGTH = 4, 256, 4, 256, 64


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.before_attention, self.before_mlp = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention, self.projection = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.widen, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.register_buffer("later", torch.full((LENGTH, LENGTH), float("-inf")).triu(1))

    def forward(self, x):
        rows, length, _ = x.shape
        q, k, v = (part.view(rows, length, HEADS, -1).transpose(1, 2) for part in self.attention(self.before_attention(x)).chunk(3, -1))
        weights = (q @ k.transpose(-1, -2) / (x.shape[-1] // HEADS)**0.5 + self.later).softmax(-1)
        x = x + self.projection((weights @ v).transpose(1, 2).reshape(rows, length, x.shape[-1]))
        return x + self.narrow(F.gelu(self.widen(self.before_mlp(x))))


class Gpt(nn.Module):
    """Tokens in, the loss of each one's successor out. The last layer has the first one's weights."""

    def __init__(self, width=WIDTH):
        super().__init__()
        self.tokens, self.places = nn.Embedding(VOCABULARY, width), nn.Embedding(LENGTH, width)
        self.blocks, self.last = nn.Sequential(*(Block(width) for _ in range(LAYERS))), nn.LayerNorm(width)

    def forward(self, tokens):
        x = self.last(self.blocks(self.tokens(tokens) + self.places.weight))
        return F.cross_entropy((x @ self.tokens.weight.t())[:, :-1].flatten(0, 1), tokens[:, 1:].flatten())
