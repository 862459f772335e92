#!/usr/bin/env python3
"""A mesh of real agents under a timetable, while agents, controller and links fail.

Usage (root): benches/mesh.py [--agents 50] [--minutes 20] [--kills 200] [--cuts 20] [--neph target/release/neph]

Each agent is a process in a network namespace of its own, joined by a bridge to the namespace of the controller. Each
circuit of the mesh is measured in each block. Meanwhile processes are killed with kill -9 (agents, the controller, and
once the campaign itself, which is resumed), and links are cut. At the end: each circuit of each block that was
completed is stored once, no two experiments that share a site overlap in their recorded times, and nothing is left at
agents or controller.
"""

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

NET = "10.99"


def run(*command, check=True):
    return subprocess.run(command, check=check, capture_output=True, text=True)


class Process:
    """A program in a namespace, started anew after each kill."""

    def __init__(self, site, command, log, cwd):
        self.site, self.command, self.log, self.cwd = site, command, log, cwd
        self.process = None

    def start(self):
        log = open(self.log, "ab")
        command = ["nsenter", f"--net=/run/netns/{self.site}", *self.command]
        self.process = subprocess.Popen(command, stdout=log, stderr=log, cwd=self.cwd)

    def kill(self, signal_number=signal.SIGKILL):
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal_number)
        if self.process:
            self.process.wait()


class Mesh:
    def __init__(self, args, folder):
        self.args, self.folder = args, folder
        self.neph = os.path.abspath(args.neph)
        self.sites = [f"nm{index}" for index in range(args.agents)]
        self.control_folder = os.path.join(folder, "control")
        self.disturbances = {"agent": 0, "controller": 0, "campaign": 0, "cut": 0}

    def create_network(self):
        run("ip", "netns", "add", "nmhub")
        hub = ["ip", "-n", "nmhub"]
        run(*hub, "link", "add", "br0", "type", "bridge")
        run(*hub, "addr", "add", f"{NET}.0.1/16", "dev", "br0")
        run(*hub, "link", "set", "br0", "up")
        run(*hub, "link", "set", "lo", "up")
        for index, site in enumerate(self.sites):
            run("ip", "netns", "add", site)
            run(*hub, "link", "add", f"v{index}", "type", "veth", "peer", "name", "eth0", "netns", site)
            run(*hub, "link", "set", f"v{index}", "master", "br0", "up")
            run("ip", "-n", site, "addr", "add", f"{self.address(index)}/16", "dev", "eth0")
            run("ip", "-n", site, "link", "set", "eth0", "up")
            run("ip", "-n", site, "link", "set", "lo", "up")

    @staticmethod
    def address(index):
        return f"{NET}.{1 + index // 200}.{1 + index % 200}"

    def delete_network(self):
        for process in [*self.agents, self.controller]:
            process.kill()
        for site in [*self.sites, "nmhub"]:
            run("ip", "netns", "del", site, check=False)

    def start(self):
        serve = [self.neph, "control", "serve", "--control", self.control_folder, "--listen", f"{NET}.0.1:7443"]
        self.controller = Process("nmhub", serve, f"{self.folder}/controller.log", self.folder)
        self.agents = []
        self.controller.start()
        time.sleep(1)
        for index, site in enumerate(self.sites):
            agent_folder = os.path.join(self.folder, site)
            os.mkdir(agent_folder)
            with open(os.path.join(agent_folder, "agent.toml"), "w") as policy:
                policy.write(
                    'version = 1\nkinds = ["udp", "icmp", "reflector"]\nlisten = ["8600"]\n'
                    f'[targets]\nallow = ["{NET}.0.0/16"]\n[budget]\nmessages_per_second = 5000\n'
                    'bytes_per_day = "10GB"\n'
                )
            line = run(self.neph, "control", "invite", site, "--control", self.control_folder).stdout.strip()
            command = [self.neph, "agent", "--controller", f"wss://{NET}.0.1:7443", "--folder", agent_folder]
            agent = Process(site, [*command, "--invite", line], f"{self.folder}/{site}.log", self.folder)
            agent.start()
            agent.command = command
            self.agents.append(agent)
        deadline = time.time() + 120
        while time.time() < deadline:
            agents = run(self.neph, "agents", "--control", self.control_folder, "--format", "json", check=False).stdout
            agents = json.loads(agents or "[]")
            if sum(agent["connected"] for agent in agents) == len(self.sites):
                return
            time.sleep(0.5)
        sys.exit("the agents are not all connected")

    def write_plan(self):
        names = ", ".join(f'"{site}"' for site in self.sites)
        text = (
            'version = 1\nname = "mesh"\ninterval = "10ms"\nmessages = 100\ntimeout = "1s"\ntries = 50\n'
            f"blocks = {self.args.blocks}\nfrom = [{names}]\n[companion]\nenabled = false\n"
        )
        for index, site in enumerate(self.sites):
            text += (
                f'[[site]]\nname = "{site}"\nagent = "{site}"\naddress = "{self.address(index)}"\n'
                f'reflector = ["--listen", "{self.address(index)}:8600"]\n'
                f'[[endpoint]]\nname = "to {site}"\nurl = "udp://{site}:8600"\n'
            )
        with open(os.path.join(self.folder, "mesh.toml"), "w") as plan_file:
            plan_file.write(text)
        print(run(self.neph, "plan", os.path.join(self.folder, "mesh.toml"), check=False).stdout.split("\n\n")[0][:600])

    def start_campaign(self, command):
        arguments = [self.neph, *command, "--control", self.control_folder, "-q", "--no-report"]
        process = Process("nmhub", arguments, f"{self.folder}/campaign.log", self.folder)
        process.start()
        return process

    def disturb(self, remaining_kills, remaining_cuts):
        """One disturbance at random."""
        remaining = remaining_kills + remaining_cuts
        if random.randrange(remaining) < remaining_cuts:
            index = random.randrange(len(self.sites))
            run("ip", "-n", "nmhub", "link", "set", f"v{index}", "down")
            time.sleep(random.uniform(1, 5))
            run("ip", "-n", "nmhub", "link", "set", f"v{index}", "up")
            self.disturbances["cut"] += 1
        elif random.random() < 0.05:
            self.controller.kill()
            self.controller.start()
            self.disturbances["controller"] += 1
        else:
            agent = random.choice(self.agents)
            agent.kill()
            time.sleep(random.uniform(0, 1))
            agent.start()
            self.disturbances["agent"] += 1

    def run_disturbed(self):
        started = time.time()
        campaign = self.start_campaign(["run", "mesh.toml"])
        duration_s = self.args.minutes * 60
        interval_s = duration_s / max(1, self.args.kills + self.args.cuts)
        kills, cuts = self.args.kills, self.args.cuts
        is_resumed = False
        while time.time() - started < duration_s and (kills + cuts) > 0:
            time.sleep(max(0.05, interval_s * random.uniform(0.5, 1.0)))
            before = dict(self.disturbances)
            self.disturb(kills, cuts)
            cuts -= self.disturbances["cut"] - before["cut"]
            kills = self.args.kills - self.disturbances["agent"] - self.disturbances["controller"] - self.disturbances["campaign"]
            if not is_resumed and time.time() - started > duration_s / 2:
                campaign.kill()
                self.disturbances["campaign"] += 1
                is_resumed = True
                campaign = self.start_campaign(["resume"])
            if campaign.process.poll() is not None:
                if campaign.process.returncode == 0:
                    break
                campaign = self.start_campaign(["resume"])
        print(f"disturbed for {time.time() - started:.0f} s: {self.disturbances}", flush=True)
        for _ in range(30):
            try:
                if campaign.process.wait(timeout=self.args.settle * 60) == 0:
                    break
            except subprocess.TimeoutExpired:
                # What is measured by then is enough: what is under way is fetched.
                campaign.kill(signal.SIGINT)
                break
            campaign = self.start_campaign(["resume"])
        print(f"campaign over after {time.time() - started:.0f} s", flush=True)

    def check(self):
        experiments = json.loads(self.list_json())
        complete = [experiment for experiment in experiments if experiment["status"] == "complete"]
        key = lambda experiment: (experiment["block"], experiment["scenario"])
        keys = [key(experiment) for experiment in complete]
        duplicates = len(keys) - len(set(keys))
        intervals, overlaps = {}, 0
        for experiment in self.measured_experiments():
            interval = (experiment["started_unix_ns"], experiment["ended_unix_ns"])
            for site in experiment["sites"]:
                intervals.setdefault(site, []).append((*interval, experiment["id"]))
        for site, site_intervals in intervals.items():
            site_intervals.sort()
            for (_, end, first), (start, _, second) in zip(site_intervals, site_intervals[1:]):
                if start < end and first != second:
                    overlaps += 1
        expected = len(self.sites) * (len(self.sites) - 1) * self.args.blocks
        orders_at_agents = sum(len(os.listdir(os.path.join(self.folder, site, "orders"))) for site in self.sites)
        # Of the campaign's orders there is one log, which is empty when all are done, and their results.
        order_folders = os.walk(os.path.join(self.folder, ".neph", "orders"))
        inbox_files = [name for _, folders, files in order_folders for name in files if name not in ("lock", "orders")]
        failed = len(experiments) - len(complete)
        print(f"experiments stored: {len(experiments)}, complete {len(complete)} of {expected}, other {failed}")
        print(f"complete twice: {duplicates}; overlaps of what shares a site: {overlaps}")
        print(f"left at agents: {orders_at_agents}; left in the inbox: {len(inbox_files)}")
        return duplicates == 0 and overlaps == 0

    def list_json(self):
        command = [self.neph, "list", "last", "--format", "json"]
        return subprocess.run(command, cwd=self.folder, capture_output=True, text=True, check=True).stdout

    def measured_experiments(self):
        """Start, end and sites of each experiment that was begun, from the catalog."""
        import sqlite3

        found = []
        for root, _, files in os.walk(self.folder):
            if "catalog.sqlite" in files:
                found.append(os.path.join(root, "catalog.sqlite"))
        database = sqlite3.connect(f"file:{found[0]}?mode=ro", uri=True)
        rows = database.execute(
            "select e.id, e.started_unix_ns, e.ended_unix_ns, s.endpoint, s.parameters_json from experiments e"
            " join scenarios s on s.campaign_id = e.campaign_id and s.id = e.scenario_id"
            " where e.ended_unix_ns is not null and e.status in ('complete', 'failed') and e.messages > 0"
        )
        for experiment_id, start, end, endpoint, parameters in rows:
            site = json.loads(parameters).get("from")
            yield {
                "id": experiment_id,
                "started_unix_ns": start,
                "ended_unix_ns": end,
                "sites": {site, endpoint.removeprefix("to ")},
            }


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--agents", type=int, default=50)
    parser.add_argument("--blocks", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=20)
    parser.add_argument("--settle", type=float, default=10, help="minutes for what is left, undisturbed")
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--cuts", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--neph", default="target/release/neph")
    args = parser.parse_args()
    random.seed(args.seed)
    folder = tempfile.mkdtemp(prefix="neph-mesh-")
    mesh = Mesh(args, folder)
    mesh.agents, mesh.controller = [], Process("nmhub", [], os.devnull, folder)
    try:
        mesh.create_network()
        mesh.start()
        mesh.write_plan()
        mesh.run_disturbed()
        is_passed = mesh.check()
    finally:
        mesh.delete_network()
    if is_passed:
        shutil.rmtree(folder)
    else:
        print(f"kept: {folder}")
    sys.exit(0 if is_passed else 1)


if __name__ == "__main__":
    main()
