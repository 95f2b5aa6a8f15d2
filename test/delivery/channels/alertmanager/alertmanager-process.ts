import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { findProgram } from "#test/support/find-program.ts";
import { findFreePort } from "#test/support/free-port.ts";

/** The Alertmanager that is installed, under Debian's name or its own; null where there is none. */
export function findAlertmanager(): string | null {
  return findProgram("prometheus-alertmanager", "alertmanager");
}

async function isReady(url: string): Promise<boolean> {
  return fetch(`${url}/-/ready`).then(
    ({ ok }) => ok,
    () => false,
  );
}

/** Starts a real Alertmanager that stores alerts and notifies nobody. */
export async function startAlertmanager(program: string) {
  const directory = mkdtempSync(path.join(tmpdir(), "longwatch-alertmanager-"));
  const config = path.join(directory, "config.yml");
  writeFileSync(config, "route:\n  receiver: nobody\nreceivers:\n  - name: nobody\n");
  const port = await findFreePort();
  const url = `http://127.0.0.1:${port}`;
  const flags = [
    `--config.file=${config}`,
    `--storage.path=${directory}`,
    `--web.listen-address=127.0.0.1:${port}`,
    "--cluster.listen-address=",
  ];
  const child: ChildProcess = spawn(program, flags, { stdio: "ignore" });
  while (child.exitCode === null && !(await isReady(url))) {
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  if (child.exitCode !== null) throw new Error(`${program} ended with ${child.exitCode}`);
  return {
    url,
    /** Returns the alerts that Alertmanager lists as firing. */
    async alerts(): Promise<{ labels: Record<string, string>; annotations: Record<string, string> }[]> {
      const reply = await fetch(`${url}/api/v2/alerts`);
      return (await reply.json()) as Awaited<ReturnType<typeof this.alerts>>;
    },
    async stop(): Promise<void> {
      const ended = once(child, "exit");
      child.kill("SIGKILL");
      await ended;
      rmSync(directory, { recursive: true, force: true });
    },
  };
}
