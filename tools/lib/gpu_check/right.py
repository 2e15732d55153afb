# tools/lib/gpu_check/right.py - the half of tools/gpu-check that asks whether layers and training are right.
import re
import shutil
import sys
import time

from gpu_check.steps import Left, Wrong, tail

LAYER_FILES = ("value_layers", "fused_layers", "image_layers", "inner_layout", "whole_blob_layers", "nets")
CLUSTER_TESTS = ("two_logical_devices_equal_two_nodes", "two_runs_on_a_gpu_give_the_same_bits",
                 "a_gpu_trains_what_the_cpu_trains", "a_cpu_and_a_gpu_train_together", "factors_of_a_gpu_are_those_of_the_cpu",
                 "a_test_net_shares_the_devices_parameters", "in_bfloat16_it_learns_the_same")


class Right:
    def layers(self, limit):
        """Each file's cases in a process of their own: after some faults a process can use the GPU no more."""
        program = self.options.bin / "test_gpu_plugin"
        if not program.exists():
            raise Left(f"{program} is not there: tools/bundle --tests brings it")
        if self.options.simulated:
            parts = ["--test-case=*LeNet*,*ReLU*"]
        else:
            parts = [f"--source-file=*/{file}_test.cpp" for file in LAYER_FILES]
            known = sum(self.count(program, part) for part in parts)
            if known != self.count(program, "--test-case=*"):
                raise Wrong(f"the files {', '.join(LAYER_FILES)} have {known} of its cases: LAYER_FILES is not whole")
        until, cases, wrong = time.monotonic() + limit, 0, []
        for part in parts:
            code, output = self.run([program, "--gpu-plugin", self.plugin, part], until - time.monotonic())
            named = list(dict.fromkeys(re.findall(r"(?m)^TEST CASE:\s+(.*)$", output)))
            total = re.search(r"test cases:\s*(\d+) \|\s*(\d+) passed", output)
            if named or code or not total or total[1] == "0":
                wrong.append(f"{part}: {f'{total[2]} of {total[1]} cases' if total else 'not all cases'} passed; "
                             f"not: {'; '.join(named) or tail(output)}")
            cases += int(total[1]) if total else 0
        if wrong:
            raise Wrong(" | ".join(wrong))
        return {"text": f"{cases} cases agree with the CPU", "cases": cases}

    def count(self, program, part):
        found = re.search(r"unskipped test cases[^\d]*(\d+)", self.run([program, part, "--count"], 60)[1])
        return int(found[1]) if found else 0

    def oracle(self, part):
        def work(limit):
            folder = self.options.oracle
            if not (folder / "MANIFEST.json").exists():
                raise Left(f"there are no results of Caffe in {folder}: --oracle says where")
            if self.options.simulated and part == "solvers":
                raise Left("half a minute on a simulated GPU: ctest's oracle.gpu_solvers has them")
            only = "layers/relu" if self.options.simulated else part
            code, output = self.run([self.options.bin / "poseidon-oracle", folder, "--only", only, "--gpu", "0",
                                     "--gpu-plugin", self.plugin, *(["--nhwc"] if part == "solvers" else [])], limit)
            failed = re.findall(r"(?m)^FAILED (.*)$", output)
            count = re.search(r"(\d+) passed, (\d+) failed, (\d+) skipped", output)
            if failed or code or not count or count[1] == "0":
                raise Wrong(f"{count[0] if count else 'no count'}: {'; '.join(failed[:20]) or tail(output)}")
            return {"text": count[0], "passed_cases": int(count[1])}
        return work

    def cluster(self, limit):
        count = 1 if self.options.simulated else 3 if self.options.quick else len(CLUSTER_TESTS)
        code, output = self.run([sys.executable, "-B", "tests/cluster/gpu_test.py",
                                 *(f"Gpu.test_{name}" for name in CLUSTER_TESTS[:count])], limit)
        wrong = re.findall(r"(?m)^(?:FAIL|ERROR): test_(\w+)", output)
        self.demand(0 if wrong else code, output, limit)
        if wrong:
            raise Wrong(f"{len(set(wrong))} of {count} failed: {', '.join(sorted(set(wrong)))}")
        return {"text": f"{count} trainings of nodes with GPUs are what they have to be"}

    def sanitizer(self, limit):
        tool = shutil.which("compute-sanitizer") or shutil.which("compute-sanitizer", path="/usr/local/cuda/bin")
        if self.options.simulated or tool is None:
            raise Left("a simulated GPU needs none" if self.options.simulated else "compute-sanitizer is not installed")
        code, output = self.run([tool, "--tool", "memcheck", "--error-exitcode", "99", "--report-api-errors", "no",
                                 self.options.bin / "test_gpu_plugin", "--test-case=*LeNet*", "--gpu-plugin", self.plugin], limit)
        if code is None:
            raise Left(f"not done after {limit:.0f} s")
        if re.search(r"Device not supported|not supported on this", output):
            raise Left("compute-sanitizer does not support this machine")
        errors = re.search(r"ERROR SUMMARY: (\d+) error", output)
        if code != 0 or not errors or errors[1] != "0":
            raise Wrong(f"{errors[0] if errors else 'no summary'}: {tail(output)}")
        return {"text": "memcheck: 0 errors in LeNet's passes"}

    def right(self):
        for name, work, limit in (("layers", self.layers, 100), ("oracle layers", self.oracle("layers"), 80),
                                  ("oracle solvers", self.oracle("solvers"), 60), ("cluster", self.cluster, 100),
                                  ("sanitizer", self.sanitizer, 60)):
            self.step(name, work, limit * self.share())
