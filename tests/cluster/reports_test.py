# tests/cluster/reports_test.py - the tables that tools write into docs/measurements have their places, and nothing else changes there.
import pathlib
import re
import shutil
import sys
import tempfile
import unittest

import cluster

sys.path.insert(0, str(cluster.ROOT / "tools/bench/lib"))
import report  # noqa: E402  (the path comes first)

TABLE = "Commit 0, 2 cores.\n\n| a | b |\n| --- | --- |\n| 1 | 2 |\n"


def sections():
    """(section, file) of each pair of markers that the measurements have."""
    return [(name, path.name) for path in sorted(report.FOLDER.glob("*.md"))
            for name in re.findall(r"^<!-- begin (.*) -->$", path.read_text(), re.M)]


class Reports(unittest.TestCase):
    def test_each_section_has_one_place_and_each_place_is_known(self):
        self.assertEqual(sorted(sections()), sorted(report.PLACES.items()))
        for section, file in sections():
            self.assertEqual((report.FOLDER / file).read_text().count(f"<!-- end {section} -->"), 1, section)

    def test_a_table_replaces_what_stands_between_its_markers_and_nothing_else(self):
        for section in report.PLACES:
            with tempfile.TemporaryDirectory() as name:
                folder = pathlib.Path(name) / "measurements"
                shutil.copytree(report.FOLDER, folder)
                _, before, between, after = report.parts(section, folder)
                self.assertIn("\n| --- |", between, section)
                self.assertNotIn("<!--", between, f"{section}: another section's marker lies within")
                self.assertLessEqual(len(re.findall(r"^#+ ", between, re.M)), 1, f"{section}: a heading that the tool does not write lies within, and would be lost")
                report.write(section, TABLE, folder)
                for path in folder.iterdir():
                    old = (report.FOLDER / path.name).read_text()
                    self.assertEqual(path.read_text(), before + TABLE + after if path.name == report.PLACES[section] else old, path.name)
                self.assertEqual(report.parts(section, folder)[2], TABLE)

    def test_lost_markers_and_unknown_sections_are_named(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            for text in ("# Routes\n", "<!-- begin routes -->\n", "<!-- end routes -->\n"):
                (folder / "routes.md").write_text(text)
                with self.assertRaisesRegex(SystemExit, r"routes\.md has no lines <!-- begin routes --> and <!-- end routes -->"):
                    report.write("routes", TABLE, folder)
                self.assertEqual((folder / "routes.md").read_text(), text)
        with self.assertRaisesRegex(SystemExit, 'there is no section "nonsense": math, small-nets'):
            report.write("nonsense", TABLE)

    def test_tools_write_sections_that_are_known(self):
        written = set()
        for path in (cluster.ROOT / "tools/bench").iterdir():
            if path.is_file() and "import report" in path.read_text(errors="replace"):
                said = re.findall(r"report\.write\(([^\n]*), text\)", path.read_text())
                self.assertEqual(len(said), 1 if "--write" in path.read_text() else 0, path.name)
                written |= set(re.findall(r'"([^"]+)"', "".join(said)))
        self.assertEqual(written | {"ddp", "small-nets", "large-nets"}, set(report.PLACES))  # written by hand, and named by the caller

    def test_each_file_says_its_question_first_is_short_and_stands_in_the_index(self):
        index = (report.FOLDER / "README.md").read_text()
        for path in sorted(report.FOLDER.glob("*.md")):
            text = path.read_text()
            self.assertLess(text.count("\n"), 300, path.name)
            if path.name != "README.md":
                self.assertRegex(text, r"^# [^\n]*\n\n[^\n]*\?\n", f"{path.name}: the first sentence asks what the file answers")
                self.assertEqual(index.count(f"]({path.name})"), 1, path.name)


if __name__ == "__main__":
    unittest.main()
