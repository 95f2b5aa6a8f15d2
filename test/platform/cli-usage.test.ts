import { describe, expect, onTestFinished } from "vitest";
import { createEmulator } from "#emulator/emulator.ts";
import { ACCESS_KEY, listPage, NOW, test } from "./support/edge-test.ts";
import { app, container } from "./support/requests.ts";
import { runCli } from "./support/run-cli.ts";

const SUBCOMMANDS = [
  "api-keys list",
  "hostname set-key-type",
  "dns-zone check",
  "containers add",
  "apps update",
  "volumes delete",
  "events list",
  "events search",
  "events export",
  "rules recommend",
  "rules metrics",
];

describe.for(SUBCOMMANDS)("%s", (name) => {
  test("explains itself with an example", async ({ platform }) => {
    const { code, out } = await runCli(platform.url, [...name.split(" "), "--help"]);
    expect(code).toBe(0);
    expect(out).toContain(`Usage: longwatch edge ${name}`);
    expect(out).toContain(`Examples:\n  npm run -s longwatch -- edge ${name}`);
  });

  test("refuses what it does not know with exit code 2, before anything is sent", async ({ platform }) => {
    const { code, out, err } = await runCli(platform.url, [...name.split(" "), "--colour", "red"]);
    expect(code).toBe(2);
    expect(out).toBe("");
    expect(err).toContain('"--colour" is not an argument or option of this command');
    expect(platform.requests).toHaveLength(0);
  });
});

describe("all usage mistakes are reported at once, with flag, value and rule", () => {
  test.for<{ args: string; says: string[] }>([
    {
      args: "events search --zone x --from 12 --to later --filter a:b --group-by colour --page-size big",
      says: [
        '--zone "x" must be',
        '--from "12" must be',
        '--to "later" must be',
        '--filter "a:b" must be',
        '--group-by "colour" must be one or more of feature, ruleId',
        '--page-size "big" must be',
      ],
    },
    { args: "events search --from -1h --to -2h --zone 101", says: ["to 1795255200000: must be after from"] },
    { args: "events search --zone 101 --from -1h --filter ip:cidr:nonsense", says: ["filters[0].value"] },
    {
      args: "events list --date 02-30-2026",
      says: ["--zone is missing", '--date "02-30-2026" must be a UTC day'],
    },
    { args: "events export", says: ["--zone is missing", "--from is missing"] },
    { args: "rules metrics --zone 0", says: ['--zone "0"', "--rule is missing"] },
    {
      args: "hostname set-key-type",
      says: ["--pull-zone is missing", "--hostname is missing", "--key-type is missing"],
    },
    { args: "dns-zone check", says: ["--name is missing"] },
    {
      args: "containers add --app a --name w --image-name a@b --image-namespace l --image-tag 1 --image-registry-id 1",
      says: ['--image-name "a@b" must match pattern'],
    },
    {
      args: "hostname set-key-type --pull-zone x --key-type dsa --hostname a",
      says: [
        '--pull-zone "x" must be a pull zone\'s number',
        '--key-type "dsa" must be ecdsa (0) or rsa (1)',
      ],
    },
    {
      args: "events list --zone 1 --date 2026-11-20T05:00",
      says: ['--date "2026-11-20T05:00" must be a UTC day'],
    },
    { args: "volumes delete", says: ["--app is missing", "--volume is missing"] },
    {
      args: "api-keys list --page 0 --per-page 2000",
      says: ['--page "0" must be at least 1', '--per-page "2000" must be at most 1000'],
    },
    {
      args: "containers add --name web --env X",
      says: [
        "--app is missing",
        '--env "X" must be NAME=value',
        "--image-name is missing",
        "--image-namespace is missing",
        "--image-tag is missing",
        "--image-registry-id is missing",
      ],
    },
    {
      args: "apps update --app a --min 0",
      says: ["--name is missing", '--min "0" must be at least 1', "--max is missing"],
    },
    {
      args: "apps update --app a --body /nonexistent.json --name x",
      says: [
        '--body "/nonexistent.json" must be a file',
        '--body "/nonexistent.json" must be given without the flags',
      ],
    },
    { args: "--timeout 0 dns-zone check --name a", says: ['--timeout "0" must be 1 to 3600 seconds'] },
  ])("$args", async ({ args, says }, { platform }) => {
    const { code, err } = await runCli(platform.url, args.split(" "));
    expect(code).toBe(2);
    for (const text of says) expect(err).toContain(text);
    expect(err).toContain(says.length === 1 ? "1 mistake," : `${says.length} mistakes,`);
    expect(platform.requests).toHaveLength(0);
  });

  test.for([["frobnicate"], ["events", "frobnicate"], [], ["events"], ["events", "list", "--zone"]])(
    "%j is exit code 2",
    async (args, { platform }) => {
      expect((await runCli(platform.url, args)).code).toBe(2);
    },
  );
});

describe("requests from flags", () => {
  test("a search with relative times, filters and grouping", async ({ platform }) => {
    platform.reply(200, { rows: null, groups: [], total: 0 });
    const args = [
      "events",
      "search",
      "--zone",
      "101",
      "--from",
      "-2h",
      "--to",
      "2026-11-21T11:30",
      "--query",
      "q",
    ];
    const filters = ["--filter", "ip:cidr:2001:db8::/32", "--filter", "ua:in:a\\,b,c"];
    const { code } = await runCli(platform.url, [
      ...args,
      ...filters,
      "--group-by",
      "ip,ruleId",
      "--buckets",
      "600",
      "--page",
      "1",
      "--page-size",
      "9999",
    ]);
    expect(code).toBe(0);
    expect(JSON.parse(platform.requests[0]?.body ?? "")).toEqual({
      from: NOW - 7_200_000,
      to: Date.UTC(2026, 10, 21, 11, 30),
      query: "q",
      filters: [
        { field: "ip", op: "cidr", value: ["2001:db8::/32"] },
        { field: "ua", op: "in", value: ["a,b", "c"] },
      ],
      groupBy: ["ip", "ruleId"],
      buckets: 600,
      page: 1,
      pageSize: 9_999,
    });
  });

  test.for([
    ["today", "11-21-2026"],
    ["yesterday", "11-20-2026"],
    ["2026-11-19", "11-19-2026"],
    ["11-19-2026", "11-19-2026"],
  ] as const)("--date %s asks for %s", async ([date, asked], { platform }) => {
    platform.reply(200, listPage());
    await runCli(platform.url, ["events", "list", "--zone", "101", "--date", date, "--token", "a/b="]);
    expect(platform.requests[0]?.path).toBe(`/shield/event-logs/101/${asked}/a%2Fb%3D`);
  });

  test.for([
    ["1795262400000", NOW],
    ["2026-11-21", Date.UTC(2026, 10, 21)],
    ["2026-11-21T11:00:00Z", NOW - 3_600_000],
    ["2026-11-21T12:00:00+02:00", NOW - 7_200_000],
    ["-90m", NOW - 5_400_000],
  ] as const)("--from %s is %d", async ([from, ms], { platform }) => {
    platform.reply(200, { rows: [], total: 0 });
    await runCli(platform.url, ["events", "search", "--zone", "1", "--from", from, "--to", "+1d"]);
    expect(JSON.parse(platform.requests[0]?.body ?? "")).toMatchObject({ from: ms, to: NOW + 86_400_000 });
  });

  test("a body from standard input", async ({ platform }) => {
    const request = { name: "shop", autoScaling: { min: 1, max: 2 }, regionSettings: {} };
    platform.reply(200, { id: "a" });
    const { code, out } = await runCli(platform.url, ["apps", "update", "--app", "a", "--body", "-"], {
      stdin: JSON.stringify(request),
    });
    expect({
      code,
      out: JSON.parse(out) as unknown,
      sent: JSON.parse(platform.requests[0]?.body ?? "") as unknown,
    }).toEqual({ code: 0, out: { id: "a" }, sent: request });
  });

  test.for<{ name: string; args: string; body: object; notes: string[] }>([
    {
      name: "a hostname without a key type",
      args: "hostname set-key-type --pull-zone 5",
      body: { Hostname: "a.test" },
      notes: ["KeyType is missing: must be 0 (ECDSA) or 1 (RSA)"],
    },
    {
      name: "a template with members and values that the platform's API does not show",
      args: "containers add --app a",
      body: {
        ...container,
        imageDigest: "",
        schedule: "nightly",
        probes: { startup: { httpGet: { response: { expectedStatusCode: 204, body: "ok" } } } },
        endpoints: [
          { displayName: "two", cdn: { portMappings: [{ containerPort: 80 }, { containerPort: 81 }] } },
          { displayName: "web", cdn: { portMappings: [{ containerPort: 80, protocols: ["TCP"] }] } },
        ],
      },
      notes: [
        "probes.startup.httpGet.response.expectedStatusCode 204: ",
        "probes.startup.httpGet.response: body: not a member of this body",
        "endpoints[0].cdn.portMappings [",
        'endpoints[1].cdn.portMappings[0].protocols[0] "TCP": ',
        "schedule: not a member of this body",
      ],
    },
    {
      name: "an application without its required members",
      args: "apps update --app a",
      body: { name: "shop", regionSettings: { nodeSelectors: { disk: ["ssd"] } } },
      notes: ["autoScaling is missing: ", 'regionSettings.nodeSelectors.disk ["ssd"]: '],
    },
  ])("$name is sent as it was written, with a note for each member", async (one, { platform }) => {
    platform.reply(200, { id: "a" });
    const { code, err } = await runCli(platform.url, [...one.args.split(" "), "--body", "-"], {
      stdin: JSON.stringify(one.body),
    });
    expect(code).toBe(0);
    expect(JSON.parse(platform.requests[0]?.body ?? "")).toEqual(one.body);
    for (const note of one.notes) expect(err).toContain(`  - ${note}`);
    expect(err.match(/^ {2}- /gm)).toHaveLength(one.notes.length);
  });

  test("a template that the platform returned is sent back unchanged", async () => {
    const emulator = await createEmulator({ historyHours: 0.5, accessKey: ACCESS_KEY });
    onTestFinished(() => emulator.close());
    const described = (await (await fetch(`${emulator.url}/_emulator`)).json()) as {
      apps: { id: string }[];
    };
    const id = described.apps[0]?.id ?? "";
    const send = (args: readonly string[], body: object) =>
      runCli(emulator.url, [...args, "--app", id, "--body", "-"], { stdin: JSON.stringify(body) });
    const added = await send(["containers", "add"], { ...container, name: "copied", imageDigest: "" });
    expect(added).toMatchObject({ code: 0, err: "" });
    const template: unknown = JSON.parse(added.out);
    const { code, err } = await send(["apps", "update"], {
      ...app,
      volumes: [],
      containerTemplates: [template],
    });
    expect(err).toContain("  - containerTemplates[0]: packageId: not a member of this body\n");
    expect(code).toBe(0);
  });

  test("a body that is no JSON is a mistake", async ({ platform }) => {
    const { code, err } = await runCli(platform.url, ["apps", "update", "--app", "a", "--body", "-"], {
      stdin: "{",
    });
    expect(code).toBe(2);
    expect(err).toContain('--body "-" must be a file with JSON');
  });

  test("a changed key type says what holds now", async ({ platform }) => {
    platform.reply(204);
    const { out } = await runCli(platform.url, [
      "hostname",
      "set-key-type",
      "--pull-zone",
      "5",
      "--hostname",
      "a.test",
      "--key-type",
      "RSA",
    ]);
    expect(JSON.parse(out)).toEqual({ Hostname: "a.test", KeyType: 1 });
  });
});
