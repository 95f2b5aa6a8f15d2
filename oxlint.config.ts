/**
 * The linter's rules. The borders between rooms are one table, from which a rule per room is made. An import from
 * another room names it (`#db/...`). The tests of `test/lint` plant one import per border and refuse a path that leaves its room.
 */
const STAGES = ["coverage", "ingest", "detection", "alerting", "delivery", "archive", "privacy"].map(
  (stage) => `stages/${stage}`,
);
const FACES = ["faces/http", "faces/cli", "faces/console", "faces/mcp"];
const ADAPTERS = ["adapters/edge", "adapters/queue", "adapters/embedded", "adapters/storage"];
/** Every room of `src`; those of `stages`, `faces` and `adapters` one by one. */
const ROOMS = ["app", "config", "operations", "emulator", "model", "lib", ...FACES, ...ADAPTERS, ...STAGES];
const STAGE = "A stage imports no storage, no queue, no clock and no stage that comes later.";

interface Border {
  /** The rooms that may be imported; `jobs` and `db` lie beside `src`, all others in it. */
  readonly may: readonly string[];
  readonly because: string;
}

const BORDERS: Readonly<Record<string, Border>> = {
  lib: { may: [], because: "lib knows nothing of Longwatch." },
  model: { may: ["lib"], because: "model holds shared types; it imports only lib." },
  "adapters/edge": { may: ["lib"], because: "edge knows the platform's API and nothing else of Longwatch." },
  "adapters/embedded": {
    may: ["lib"],
    because: "embedded starts Postgres and knows nothing of what is stored in it.",
  },
  "adapters/storage": {
    may: ["model", "lib"],
    because: "storage keeps files; app and cli hand it to whoever reads or writes the archive.",
  },
  "adapters/queue": { may: ["lib"], because: "queue is handed its jobs by app." },
  emulator: {
    may: ["lib", "adapters/edge"],
    because:
      "The emulator is the tests' independent oracle: it shares only the wire contract in adapters/edge.",
  },
  "stages/coverage": { may: ["model", "lib", "adapters/edge"], because: STAGE },
  "stages/detection": { may: ["model", "lib", "adapters/edge"], because: STAGE },
  "stages/alerting": { may: ["stages/detection", "model", "lib"], because: STAGE },
  "stages/delivery": { may: ["model", "lib"], because: STAGE },
  "stages/privacy": { may: ["model", "lib"], because: STAGE },
  "stages/ingest": { may: ["stages/coverage", "model", "lib", "adapters/edge"], because: STAGE },
  "stages/archive": { may: ["stages/privacy", "model", "lib"], because: STAGE },
  config: {
    may: [
      "stages/alerting",
      "stages/archive",
      "stages/delivery",
      "stages/detection",
      "stages/privacy",
      "model",
      "lib",
    ],
    because: "config reads settings; it starts nothing and stores nothing.",
  },
  db: { may: ["model", "lib"], because: "db imports only model and lib." },
  jobs: {
    may: [...STAGES, "adapters/edge", "adapters/queue", "model", "lib", "db"],
    because: "jobs call stages and db; app hands them everything else.",
  },
  operations: {
    may: [...STAGES, "adapters/edge", "config", "model", "lib", "db", "jobs"],
    because: "operations call jobs, stages and db; http, cli and app call operations.",
  },
  "faces/http": {
    may: [...STAGES, "adapters/edge", "config", "model", "lib", "db", "operations"],
    because: "http calls operations, stages and db; app starts it.",
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
    may: [...ROOMS.filter((room) => room !== "faces/cli"), "db", "jobs"],
    because: "app is called by cli and main only.",
  },
};

/** Libraries, and the folders that may import them. `src/faces/cli` and `src/main.ts` have no border. */
const LIBRARIES: Readonly<Record<string, readonly string[]>> = {
  bullmq: ["adapters/queue"],
  ioredis: ["adapters/queue"],
  "node-cron": ["adapters/queue", "lib"],
  pg: ["db", "adapters/embedded"],
  "pg-copy-streams": ["db"],
  "drizzle-orm": ["db"],
  "drizzle-orm/*": ["db"],
  "@duckdb/node-api": ["db"],
  undici: ["adapters/edge", "stages/delivery", "adapters/storage"],
  aws4fetch: ["adapters/storage"],
  "openid-client": ["app"],
  nodemailer: ["stages/delivery"],
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
  ...["alertmanager", "discord", "email", "jira-service-management", "opsgenie", "pagerduty"],
  ...["slack", "slack-bot", "teams", "terminal", "webhook"],
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

/** The imports that a room may not have. */
function forbid(room: string, { may, because }: Border): Pattern {
  const rooms = [...ROOMS, "jobs", "db"].filter((other) => other !== room && !may.includes(other));
  const libraries = Object.keys(LIBRARIES).filter((library) => !LIBRARIES[library]?.includes(room));
  // A channel measures how long a receiver takes, so delivery may have a clock.
  const clock = STAGES.includes(room) && room !== "stages/delivery" ? ["#lib/clock.ts"] : [];
  const edge = "#adapters/edge";
  const client = room === "emulator" ? [`${edge}/*.ts`, `${edge}/transport/**`, `${edge}/account/**`] : [];
  // Types are gone when the page is built.
  const types = room === "faces/console" ? { allowTypeImports: true } : {};
  const group = [...rooms.map((other) => `#${other}/**`), ...client, ...libraries, ...clock];
  return { group, message: because, ...types };
}

function override(files: string, ...patterns: readonly Pattern[]) {
  return { files: [files], rules: { "no-restricted-imports": ["error", { patterns }] } };
}

// Of several overrides of a file the last one counts alone, so those within delivery repeat its border.
const DELIVERY = forbid("stages/delivery", BORDERS["stages/delivery"] as Border);
const borders = [
  ...Object.entries(BORDERS).map(([room, border]) =>
    override(isBesideSrc(room) ? `${room}/**` : `src/${room}/**`, forbid(room, border)),
  ),
  override("src/stages/delivery/message/**", DELIVERY, {
    group: ["**/channels/**"],
    message: "message knows no channel.",
  }),
  ...CHANNELS.map((channel) =>
    override(`src/stages/delivery/channels/${channel}/**`, DELIVERY, {
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
