# tests/cluster/launch_restarts_test.py - tools/launch/local --max-restarts: which worker is started again, with what, and how the run ends.
import os
import pathlib
import re
import signal

import cluster
import launch_script_test


class Restarts(launch_script_test.Scripts):
    """The workers say what Poseidon says when they have begun and joined."""

    JOINED = """
        echo "$RANK $TORCHELASTIC_RESTART_COUNT of $TORCHELASTIC_MAX_RESTARTS listens '$POSEIDON_LISTEN' nodes '$POSEIDON_NODES' joins '$POSEIDON_JOIN'" >&2
        if [ -n "$POSEIDON_NODES" ]; then echo "poseidon: listening on $POSEIDON_LISTEN; others join with join=$POSEIDON_LISTEN" >&2
        else echo "poseidon: joined: worker $RANK of 2; this worker listens on 127.0.0.1:$((1000 + RANK))" >&2; fi
        """

    def restarted(self, times, workers, text):
        """`text` may read a line from fifo$RANK, which go() writes. The pipes are there before the workers, and this process has both ends of them, so that
        neither side waits for the other one to open."""
        self.fifos = []
        for place in range(workers):
            os.mkfifo(self.folder / f"fifo{place}")
            self.fifos.append(os.open(self.folder / f"fifo{place}", os.O_RDWR))
            self.addCleanup(os.close, self.fifos[-1])
        return self.local("--max-restarts", times, workers, "sh", "-c", self.JOINED + text, self.folder)

    def go(self, place):
        os.write(self.fifos[place], b"go\n")

    def joined_again(self, run, place):
        run.wait_for(f"^{place} . poseidon: joined", since=next(i for i, line in enumerate(run.lines) if re.match(rf"{place} . {place} 1 of", line)))

    def test_one_that_fails_joins_those_that_go_on_and_worker_0_too(self):
        # Each fails when both have been seen to take part, and ends well when it has come back and the other one has.
        run = self.restarted(2, 2, 'read x < fifo$RANK; if [ $TORCHELASTIC_RESTART_COUNT = 0 ]; then kill -9 $$; fi')
        port = run.wait_for(r"0 . poseidon: listening on 127.0.0.1:(\d+)")[1]
        run.wait_for("1 . poseidon: joined")
        self.go(1)
        run.wait_for("^launch: 1: sh was ended by SIGKILL.* The others go on, and it is started again in 3 s, restart 1 of 2$")
        run.wait_for(rf"^1 . 1 1 of 2 listens '' nodes '' joins '127.0.0.1:{port}'$")
        self.joined_again(run, 1)
        self.go(0)
        run.wait_for("^launch: 0: sh was ended by SIGKILL.* started again in 3 s, restart 1 of 2$")
        run.wait_for(rf"^0 . 0 1 of 2 listens '127.0.0.1:{port}' nodes '' joins '127.0.0.1:1001'$")
        self.joined_again(run, 0)
        for place in 1, 0:
            self.go(place)
        self.assertEqual(run.wait(), 0, run)

    def test_one_that_has_used_up_its_restarts_ends_nobody_else(self):
        run = self.restarted(1, 3, 'if [ $RANK = 1 ]; then read x < fifo1; echo why >&2; exit 7; fi; read x < fifo$RANK')
        for place in "12":
            run.wait_for(f"{place} . poseidon: joined")
        run.wait_for("0 . poseidon: listening")
        self.go(1)
        run.wait_for("^1 . 1 1 of 1 .* joins '127.0.0.1:[0-9]*,127.0.0.1:1002'$")
        self.go(1)
        run.wait_for("^launch: 1: sh ended with code 7: why. The others go on without it")
        for place in 0, 2:
            self.go(place)
        self.assert_ended(run, 0, "^launch: 1: sh ended with code 7: why. The others have gone on, and have ended well$")

    def test_where_nobody_is_left_the_code_is_that_of_the_worker_that_failed_first(self):
        run = self.restarted(3, 2, 'read x < fifo$RANK; exit $((7 + RANK))')
        run.wait_for("0 . poseidon: listening")
        run.wait_for("1 . poseidon: joined")
        self.go(1)
        run.wait_for("^launch: 1: .* started again in 3 s")
        self.go(0)
        self.assert_ended(run, 8, "^launch: 1: sh ended with code 8")

    def test_one_that_left_is_not_started_again_and_does_not_make_the_end_a_good_one(self):
        run = self.restarted(3, 2, 'read x < fifo$RANK; exit $((7 * (1 - RANK)))')
        run.wait_for("0 . poseidon: listening")
        run.wait_for("1 . poseidon: joined")
        self.go(1)
        children = pathlib.Path(f"/proc/{run.pid}/task/{run.pid}/children")
        cluster.wait_until(lambda: len(children.read_text().split()) == 1, "the launcher has heard that worker 1 has ended")
        self.go(0)
        self.assert_ended(run, 7, "^launch: 0: sh ended with code 7")
        self.assertNotIn("started again", run.output)

    def test_one_that_fails_before_it_has_joined_ends_all(self):
        self.assert_ended(self.local("--max-restarts", 5, 2, "sh", "-c", f"if [ $RANK = 1 ]; then exit 7; fi; {launch_script_test.FOREVER}", self.folder), 7,
                          "^launch: 1: sh ended with code 7")

    def test_ctrl_c_ends_a_run_of_which_one_is_away(self):
        run = self.restarted(5, 2, f"if [ $RANK = 1 ]; then read x < fifo1; exit 7; fi; {launch_script_test.FOREVER}")
        run.wait_for("0 . poseidon: listening")
        run.wait_for("1 . poseidon: joined")
        self.go(1)
        run.wait_for("started again in 3 s")
        run.signal(signal.SIGINT)
        self.assert_ended(run, 130, "^launch: stopped by SIGINT$")

    def test_ctrl_c_ends_a_run_that_has_none_but_one_that_is_away(self):
        run = self.local("--max-restarts", 5, "--add", "127.0.0.1:9", "--token-file", self.cluster.token_file(), 1, "sh", "-c",
                         "echo 'poseidon: joined: worker 2 of 3; this worker listens on 127.0.0.1:8' >&2; exit 7", self.folder)
        run.wait_for("started again in 3 s")
        run.signal(signal.SIGINT)
        self.assert_ended(run, 130, "^launch: stopped by SIGINT$")
        self.assertEqual(sum(line.startswith("0 | poseidon: joined") for line in run.errors), 1, run)

    def test_an_added_worker_that_fails_joins_by_the_addresses_that_were_given(self):
        run = self.local("--max-restarts", 1, "--add", "127.0.0.1:9", "--token-file", self.cluster.token_file(), 1, "sh", "-c",
                         "echo \"$TORCHELASTIC_RESTART_COUNT joins $POSEIDON_JOIN\"; echo 'poseidon: joined: worker 2 of 3; this worker listens on 127.0.0.1:8' >&2; "
                         "exit $((7 * (1 - TORCHELASTIC_RESTART_COUNT)))", self.folder)
        self.assertEqual(run.wait(), 0, run)
        self.assertIn("0 | 1 joins 127.0.0.1:9", run.lines)


if __name__ == "__main__":
    cluster.main()
