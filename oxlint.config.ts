/**
 * The linter's rules. The borders between rooms are one table, from which a rule per room is made. An import from
 * another room names it (`#db/...`). The tests of `test/lint` plant one import per border and refuse a path that leaves its room.
 */

import path from "node:path";

/** What Longwatch can do. `jobs`, `db` and `test` have folders of the same names. */
const CAPABILITIES = ["ingest", "proof", "detection", "alerts", "delivery", "archive", "people", "health"];
/** The pure part of each. */
const RULES = CAPABILITIES.map((capability) => `${capability}/rules`);
const RULE = "Rules import no storage, no queue, no clock and nothing that comes later.";
const OPERATION = "A capability calls rules, jobs and db; faces and app call it.";
/** Everything below the operations of a capability. */
const BELOW = [
  ...RULES,
  "delivery/receivers",
  "platform",
  "config",
  "model",
  "lib",
  "db",
  "jobs",
  "operations",
];

interface Border {
  /** The rooms that may be imported; `jobs` and `db` lie beside `src`, all others in it. */
  readonly may: readonly string[];
  readonly because: string;
}

/** Every room except `faces/cli`, which may import all others. */
export const BORDERS: Readonly<Record<string, Border>> = {
  lib: { may: [], because: "lib knows nothing of Longwatch." },
  model: { may: ["lib"], because: "model holds shared types; it imports only lib." },
  platform: { may: ["lib"], because: "platform knows the platform's API and nothing else of Longwatch." },
  "store/embedded": {
    may: ["lib"],
    because: "embedded starts Postgres and knows nothing of what is stored in it.",
  },
  "store/bucket": {
    may: ["model", "lib"],
    because: "bucket keeps files; app and cli hand it to whoever reads or writes the archive.",
  },
  "store/queue": { may: ["lib"], because: "queue is handed its jobs by app." },
  emulator: {
    may: ["lib", "platform"],
    because: "The emulator is the tests' independent oracle: it shares only the wire contract in platform.",
  },
  "proof/rules": { may: ["model", "lib", "platform"], because: RULE },
  "detection/rules": { may: ["model", "lib", "platform"], because: RULE },
  "alerts/rules": { may: ["detection/rules", "model", "lib"], because: RULE },
  "delivery/rules": { may: ["delivery/receivers", "model", "lib"], because: RULE },
  "people/rules": { may: ["model", "lib"], because: RULE },
  "ingest/rules": { may: ["proof/rules", "model", "lib", "platform"], because: RULE },
  "archive/rules": { may: ["people/rules", "model", "lib"], because: RULE },
  "health/rules": { may: ["alerts/rules", "model", "lib"], because: RULE },
  "delivery/receivers": {
    may: ["delivery/rules", "model", "lib"],
    because: "receivers send what they are handed.",
  },
  config: {
    may: [
      "alerts/rules",
      "archive/rules",
      "detection/rules",
      "people/rules",
      "delivery/receivers",
      "model",
      "lib",
    ],
    because: "config reads settings; it starts nothing and stores nothing.",
  },
  db: { may: ["model", "lib"], because: "db imports only model and lib." },
  jobs: {
    may: [...RULES, "delivery/receivers", "platform", "store/queue", "model", "lib", "db"],
    because: "jobs call rules and db; app hands them everything else.",
  },
  ingest: { may: BELOW, because: OPERATION },
  proof: { may: BELOW, because: OPERATION },
  archive: { may: BELOW, because: OPERATION },
  alerts: { may: BELOW, because: OPERATION },
  delivery: { may: BELOW, because: OPERATION },
  detection: { may: [...BELOW, "proof", "archive", "alerts"], because: OPERATION },
  people: { may: [...BELOW, "proof"], because: OPERATION },
  health: { may: [...BELOW, "proof", "archive", "alerts", "delivery"], because: OPERATION },
  operations: {
    may: [...BELOW, ...CAPABILITIES],
    because: "operations is the frame and the list of the operations of all capabilities.",
  },
  "faces/http": {
    may: [...BELOW.filter((room) => room !== "jobs"), ...CAPABILITIES],
    because: "http calls operations; app starts it.",
  },
  "faces/mcp": {
    may: ["config", "model", "lib", "operations"],
    because: "mcp offers operations to assistants; cli starts it.",
  },
  "faces/console": {
    may: ["model", "lib"],
    because: "console runs in a browser: it imports types of http, and otherwise only model and lib.",
  },
  app: {
    may: [
      "store/queue",
      "store/embedded",
      "store/bucket",
      "emulator",
      "faces/http",
      "faces/mcp",
      "faces/console",
      ...BELOW,
      ...CAPABILITIES,
    ],
    because: "app is called by cli and main only.",
  },
};
const ROOMS = [...Object.keys(BORDERS), "faces/cli"];

/** Libraries, and the rooms that may import them. `src/faces/cli` and `src/main.ts` have no border. */
export const LIBRARIES: Readonly<Record<string, readonly string[]>> = {
  bullmq: ["store/queue"],
  ioredis: ["store/queue"],
  "node-cron": ["store/queue", "lib"],
  pg: ["db", "store/embedded"],
  "pg-copy-streams": ["db"],
  "drizzle-orm": ["db"],
  "drizzle-orm/*": ["db"],
  "@duckdb/node-api": ["db"],
  undici: ["platform", "delivery/receivers", "store/bucket"],
  aws4fetch: ["store/bucket"],
  "openid-client": ["app"],
  nodemailer: ["delivery/receivers"],
  liquidjs: ["delivery/rules"],
  fastify: ["faces/http", "app"],
  "fastify/*": ["faces/http", "app"],
  "prom-client": ["faces/http"],
  pino: ["lib"],
  commander: [],
  "@modelcontextprotocol/*": ["faces/mcp"],
  yaml: ["config"],
  react: ["faces/console"],
  "react-dom/*": ["faces/console"],
  "@mantine/*": ["faces/console"],
  "@tanstack/*": ["faces/console"],
  uplot: ["faces/console"],
  wouter: ["faces/console"],
};

const CHANNELS = [
  "alertmanager",
  "discord",
  "email",
  "jira-service-management",
  "opsgenie",
  "pagerduty",
  "slack",
  "slack-bot",
  "teams",
  "terminal",
  "webhook",
  "google-chat",
  "mattermost",
  "ntfy",
  "pushover",
  "telegram",
];

/** Channels that send the requests of another one. */
const SHARED: Readonly<Record<string, string>> = {
  "slack-bot": "slack",
  "jira-service-management": "opsgenie",
};

interface Pattern {
  readonly group: readonly string[];
  readonly message: string;
  readonly allowTypeImports?: boolean;
}

const isBesideSrc = (room: string) => room === "jobs" || room === "db";

/** The imports that a room may not have. A room within another one stands after it, because the last pattern that matches decides. */
function forbid(room: string, { may, because }: Border): Pattern {
  const rooms = ROOMS.toSorted().flatMap((other) => {
    const isAllowed = other === room || may.includes(other);
    if (!isAllowed) return [`#${other}/**`];
    return other.includes("/") && !may.includes(path.dirname(other)) ? [`!#${other}/**`] : [];
  });
  const libraries = Object.keys(LIBRARIES).filter((library) => !LIBRARIES[library]?.includes(room));
  const clock = RULES.includes(room) ? ["#lib/clock.ts"] : [];
  const client =
    room === "emulator" ? ["#platform/*.ts", "#platform/transport/**", "#platform/account/**"] : [];
  // Types are gone when the page is built.
  const types = room === "faces/console" ? { allowTypeImports: true } : {};
  return { group: [...rooms, ...client, ...libraries, ...clock], message: because, ...types };
}

function override(files: string, ...patterns: readonly Pattern[]) {
  return { files: [files], rules: { "no-restricted-imports": ["error", { patterns }] } };
}

// Of several overrides of a file the last one counts alone: the room within another one stands after it.
const RECEIVERS = forbid("delivery/receivers", BORDERS["delivery/receivers"] as Border);
const borders = [
  ...Object.entries(BORDERS)
    .toSorted(([a], [b]) => a.split("/").length - b.split("/").length)
    .map(([room, border]) =>
      override(isBesideSrc(room) ? `${room}/**` : `src/${room}/**`, forbid(room, border)),
    ),
  ...CHANNELS.map((channel) =>
    override(`src/delivery/receivers/channels/${channel}/**`, RECEIVERS, {
      group: CHANNELS.filter((other) => other !== channel && SHARED[channel] !== other).map(
        (other) => `**/${other}/**`,
      ),
      message: "A channel imports nothing of another channel, except of the one whose requests it shares.",
    }),
  ),
];

export default {
  plugins: ["typescript", "import", "unicorn", "promise", "vitest"],
  categories: { correctness: "error", suspicious: "error" },
  rules: {
    "typescript/no-floating-promises": "error",
    "typescript/no-misused-promises": "error",
    "typescript/switch-exhaustiveness-check": "error",
    "import/no-cycle": "error",
    "import/no-named-as-default-member": "off",
    "import/no-unassigned-import": "off",
    "unicorn/no-array-sort": "off",
    "unicorn/no-array-reverse": "off",
    "eslint/no-await-in-loop": "off",
    "eslint/no-shadow": "off",
    "eslint/no-underscore-dangle": "off",
    "unicorn/consistent-function-scoping": "off",
    "typescript/no-unsafe-type-assertion": "off",
    "promise/always-return": "off",
    "promise/no-multiple-resolved": "off",
    "no-console": "error",
  },
  overrides: [
    ...borders,
    // Runs in Node, when the console is built.
    { files: ["src/faces/console/vite.config.ts"], rules: { "no-restricted-imports": "off" } },
    {
      files: ["test/**", "src/faces/cli/**", "src/main.ts"],
      rules: {
        "no-empty-pattern": "off",
        "no-console": "off",
        "vitest/no-standalone-expect": "off",
        "vitest/expect-expect": "off",
        "vitest/require-mock-type-parameters": "off",
      },
    },
  ],
};
