# tools/lib/elf.py - reads what a shared library needs, and changes names in it so that another copy of it may be in the process.
"""Files are those of x86-64 Linux. Every change keeps the file's length and the place of all its parts, so nothing has to be moved.

Source  System V ABI, chapters 4 and 5 (ELF); Linux Standard Base, 10.7 (symbol versions)."""
import re
import struct

DT_NEEDED, DT_STRTAB, DT_STRSZ, DT_SONAME, DT_RPATH, DT_RUNPATH, DT_VERNEED, DT_VERNEEDNUM = 1, 5, 10, 14, 15, 29, 0x6FFFFFFE, 0x6FFFFFFF
PT_LOAD, PT_DYNAMIC, SHT_DYNSYM = 1, 2, 11
STB_WEAK, STB_GNU_UNIQUE = 2, 10
OF_STD = re.compile(rb"_Z(GV)?Z?NK?St")


class NotElf(Exception):
    """What is wrong with the file, one line."""


class Elf:
    """One file in memory: needed, soname, paths and versions are texts; bytes() is the file with what has been changed."""

    def __init__(self, path):
        self.path, self._all = path, bytearray(path.read_bytes())
        if self._all[:6] != b"\x7fELF\x02\x01":
            raise NotElf(f"{path} is no little-endian ELF file of 64 bits")
        headers, self._sections = struct.unpack_from("<QQ", self._all, 32)
        size, count, self._section_size, self._section_count = struct.unpack_from("<4H", self._all, 54)
        programs = [struct.unpack_from("<IIQQQQ", self._all, headers + size * i) for i in range(count)]
        self._loads = [(address, offset, length) for kind, _, offset, address, _, length in programs if kind == PT_LOAD]
        self._dynamic = []
        for kind, _, offset, _, _, length in programs:
            if kind == PT_DYNAMIC:
                self._dynamic = [struct.unpack_from("<qQ", self._all, at) for at in range(offset, offset + length, 16)]
        self._strings = self._offset(self._value(DT_STRTAB))
        self._strings_end = self._strings + self._value(DT_STRSZ)

    def __bytes__(self):
        return bytes(self._all)

    def _value(self, tag, default=None):
        for found, value in self._dynamic:
            if found == tag:
                return value
        if default is None:
            raise NotElf(f"{self.path} has no entry {tag} in its dynamic section: it is no shared library")
        return default

    def _offset(self, address):
        for start, offset, length in self._loads:
            if start <= address < start + length:
                return address - start + offset
        raise NotElf(f"{self.path}: address {address:#x} lies in no part of the file")

    def _text(self, place):
        start = self._strings + place
        return self._all[start:self._all.index(0, start)].decode()

    def _texts(self, tag):
        return [self._text(value) for found, value in self._dynamic if found == tag]

    @property
    def needed(self):
        return self._texts(DT_NEEDED)

    @property
    def soname(self):
        return next(iter(self._texts(DT_SONAME)), None)

    @property
    def paths(self):
        """Where the dynamic linker looks for what is needed."""
        return self._texts(DT_RPATH) + self._texts(DT_RUNPATH)

    def _version_needs(self):
        """(place of a library's name, its versions) for each library of which versions are needed."""
        at = self._offset(self._value(DT_VERNEED)) if self._value(DT_VERNEEDNUM, 0) else 0
        for _ in range(self._value(DT_VERNEEDNUM, 0)):
            _, count, file, first, following = struct.unpack_from("<HHIII", self._all, at)
            names, one = [], at + first
            for _ in range(count):
                _, _, _, name, step = struct.unpack_from("<IHHII", self._all, one)
                names.append(self._text(name))
                one += step
            yield file, names
            at += following

    @property
    def versions(self):
        """The versions of symbols that are needed, by library: {"libc.so.6": ["GLIBC_2.2.5", ...], ...}."""
        return {self._text(file): names for file, names in self._version_needs()}

    def _symbols(self):
        """Offset of each symbol that the dynamic linker sees."""
        for i in range(self._section_count):
            at = self._sections + self._section_size * i
            kind, = struct.unpack_from("<I", self._all, at + 4)
            if kind == SHT_DYNSYM:
                offset, size = struct.unpack_from("<QQ", self._all, at + 24)
                yield from range(offset, offset + size, 24)

    def forget_paths(self, keep):
        """Of where libraries are looked for only `keep` stays, where it is there."""
        for tag, place in self._dynamic:
            if tag in (DT_RPATH, DT_RUNPATH) and keep in self._text(place).split(":"):
                self._write(place, keep)

    def _write(self, place, text):
        """A text that is not longer in the place of another one."""
        start = self._strings + place
        end = self._all.index(0, start)
        self._all[start:end] = text.encode().ljust(end - start, b"\0")

    def rename(self, names):
        """Other names, of the same length, for libraries: its own and those that it needs. `names`: the new one by the old one."""
        places = {value for tag, value in self._dynamic if tag in (DT_NEEDED, DT_SONAME)} | {file for file, _ in self._version_needs()}
        begins = {struct.unpack_from("<I", self._all, at)[0] for at in self._symbols()}
        for place in places:
            old = self._text(place)
            new = names.get(old)
            if new is None or new == old:
                continue
            changed = [place + i for i in range(len(old)) if old[i] != new[i:i + 1]]
            # Texts share their ends: "b.so" may lie in "lib.so".
            if len(new) != len(old) or self._all[self._strings + place - 1] != 0 or begins & set(range(place, changed[-1] + 1)):
                raise NotElf(f"{self.path}: the name {old} cannot become {new}, because they differ in length or another text shares its bytes")
            self._write(place, new)

    def forget_unique(self):
        """Symbols that are the only ones of their name in a process (STB_GNU_UNIQUE) are found as all others are: another copy of the library
        keeps its own. Those of C++'s standard library stay as they are: all copies of them agree."""
        for at in self._symbols():
            name, info = struct.unpack_from("<IB", self._all, at)
            start = self._strings + name
            if info >> 4 == STB_GNU_UNIQUE and not OF_STD.match(self._all, start):
                self._all[at + 4] = STB_WEAK << 4 | info & 15
