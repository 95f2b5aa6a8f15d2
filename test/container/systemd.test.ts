import { execFileSync } from "node:child_process";
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import { describeConfig } from "#config/config.ts";
import { makeTemporaryFolder } from "../support/temporary-folder.ts";

const SYSTEMD = path.join(import.meta.dirname, "../../deploy/systemd");
const unit = readFileSync(path.join(SYSTEMD, "longwatch.service"), "utf8");
const command = readFileSync(path.join(SYSTEMD, "longwatch-command.sh"), "utf8");
const secrets = describeConfig()
  .filter(({ variables }) => variables.length > 1)
  .map(({ variables }) => variables[0]);

test("every secret of the systemd unit is a credential: the unit's own user could not read the file", () => {
  expect(unit).toContain("\nDynamicUser=yes\n");
  const loaded = [...unit.matchAll(/^#?LoadCredential=(\w+):\/etc\/longwatch\/(\w+)$/gm)];
  const given = [...unit.matchAll(/\b(\w+)_FILE=(\S+)/g)].map(([, name, file]) => [name, file]);
  expect(given.length).toBeGreaterThan(1);
  expect(given).toEqual(loaded.map(([, name]) => [name, `%d/${name}`]));
  for (const [, name, file] of loaded)
    expect([secrets, file]).toEqual([expect.arrayContaining([name]), name]);
});

test("the systemd unit has no capability, and sees of the machine what the service needs", () => {
  for (const line of [
    "CapabilityBoundingSet=",
    "LockPersonality=yes",
    "NoNewPrivileges=yes",
    "ProcSubset=pid",
    "ProtectSystem=strict",
    "RemoveIPC=yes",
    "RestrictNamespaces=yes",
  ])
    expect(unit).toContain(`\n${line}\n`);
});

test("the command beside the unit has the unit's user, folder, settings and program", () => {
  for (const line of [
    "DynamicUser=yes",
    "User=longwatch",
    "StateDirectory=longwatch",
    "StateDirectoryMode=0700",
  ])
    expect([unit.includes(`\n${line}\n`), command.includes(`--property=${line}`)]).toEqual([true, true]);
  expect([unit, command].every((text) => text.includes("EnvironmentFile=/etc/longwatch.env"))).toBe(true);
  expect([unit, command].every((text) => text.includes("/opt/longwatch/src/main.ts"))).toBe(true);
  expect([unit, command].every((text) => text.includes("LONGWATCH_DATA_DIR=/var/lib/longwatch"))).toBe(true);
});

test.each([["DATABASE_URL", "EDGE_API_KEY"], []])(
  "the command runs the program in a unit with every secret as a file (%s, %s)",
  (...names) => {
    const folder = makeTemporaryFolder("systemd");
    for (const name of ["etc", "bin", "credentials"]) mkdirSync(path.join(folder, name));
    const program = (name: string, text: string) => {
      writeFileSync(path.join(folder, name), `#!/bin/sh\n${text}`);
      chmodSync(path.join(folder, name), 0o755);
    };
    for (const name of names) writeFileSync(path.join(folder, "etc", name), "secret");
    program(
      "command",
      command.replaceAll("/etc/longwatch/", `${folder}/etc/`).replace("/usr/bin/node", "node"),
    );
    program("bin/node", 'printf "%s\\n" "$@"; env | grep _FILE= | sort\n');
    // Does with its options what systemd does: keeps the files, runs the rest with their folder.
    program(
      "bin/systemd-run",
      `while [ "\${1#--}" != "$1" ]; do
  case $1 in
    --property=LoadCredential=*) from=\${1#--property=LoadCredential=}; cp "\${from#*:}" "${folder}/credentials/\${from%%:*}"; export CREDENTIALS_DIRECTORY=${folder}/credentials ;;
    --setenv=*) export "\${1#--setenv=}" ;;
  esac
  shift
done
exec "$@"\n`,
    );
    const out = execFileSync(path.join(folder, "command"), ["silences", "add", "--reason", "two words"], {
      encoding: "utf8",
      env: { PATH: `${folder}/bin:/usr/bin:/bin` },
    });
    expect(out.trim().split("\n")).toEqual([
      "/opt/longwatch/src/main.ts",
      "silences",
      "add",
      "--reason",
      "two words",
      ...names.map((name) => `${name}_FILE=${folder}/credentials/${name}`),
    ]);
  },
);
