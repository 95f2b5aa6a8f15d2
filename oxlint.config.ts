/**
 * The linter's rules. The borders between folders are one table, from which a rule per folder is made. The test
 * `test/lint/borders.test.ts` plants one import per border.
 */
const STAGES = ["coverage", "ingest", "detection", "alerting", "delivery", "archive", "privacy"];
/** Every folder of `src`. */
const FOLDERS = [
  ...[
    "app",
    "cli",
    "config",
    "http",
    "console",
    "operations",
    "edge",
    "queue",
    "embedded",
    "storage",
    "emulator",
    "model",
    "lib",
  ],
  ...STAGES,
];
const STAGE = "A stage imports no storage, no queue, no clock and no stage that comes later.";

interface Border {
  /** The folders that may be imported; `jobs` and `db` lie beside `src`, all others in it. */
  readonly may: readonly string[];
  readonly because: string;
}

const BORDERS: Readonly<Record<string, Border>> = {
  lib: { may: [], because: "lib knows nothing of Longwatch." },
  model: { may: ["lib"], because: "model holds shared types; it imports only lib." },
  edge: { may: ["lib"], because: "edge knows the platform's API and nothing else of Longwatch." },
  embedded: { may: ["lib"], because: "embedded starts Postgres and knows nothing of what is stored in it." },
  storage: {
    may: ["model", "lib"],
    because: "storage keeps files; app and cli hand it to whoever reads or writes the archive.",
  },
  queue: { may: ["lib"], because: "queue is handed its jobs by app." },
  emulator: {
    may: ["lib", "edge"],
    because: "The emulator is the tests' independent oracle: it shares only the wire contract in src/edge.",
  },
  coverage: { may: ["model", "lib", "edge"], because: STAGE },
  detection: { may: ["model", "lib", "edge"], because: STAGE },
  alerting: { may: ["model", "lib"], because: STAGE },
  delivery: { may: ["model", "lib"], because: STAGE },
  privacy: { may: ["model", "lib"], because: STAGE },
  ingest: { may: ["coverage", "model", "lib", "edge"], because: STAGE },
  archive: { may: ["privacy", "model", "lib"], because: STAGE },
  config: {
    may: ["alerting", "delivery", "detection", "privacy", "model", "lib"],
    because: "config reads settings; it starts nothing and stores nothing.",
  },
  db: { may: ["model", "lib"], because: "db imports only model and lib." },
  jobs: {
    may: [...STAGES, "edge", "queue", "model", "lib", "db"],
    because: "jobs call stages and db; app hands them everything else.",
  },
  operations: {
    may: [...STAGES, "edge", "config", "model", "lib", "db", "jobs"],
    because: "operations call jobs, stages and db; http, cli and app call operations.",
  },
  http: {
    may: [...STAGES, "edge", "config", "model", "lib", "db", "operations"],
    because: "http calls operations, stages and db; app starts it.",
  },
  console: {
    may: ["model", "lib"],
    because: "console runs in a browser: it imports types of http, and otherwise only model and lib.",
  },
  app: {
    may: [...FOLDERS.filter((folder) => folder !== "cli"), "db", "jobs"],
    because: "app is called by cli and main only.",
  },
};

/** Libraries, and the folders that may import them. `src/cli` and `src/main.ts` have no border. */
const LIBRARIES: Readonly<Record<string, readonly string[]>> = {
  bullmq: ["queue"],
  ioredis: ["queue"],
  "node-cron": ["queue"],
  pg: ["db", "embedded"],
  "pg-copy-streams": ["db"],
  "drizzle-orm": ["db"],
  "drizzle-orm/*": ["db"],
  "@duckdb/node-api": ["db"],
  undici: ["edge", "delivery", "storage"],
  aws4fetch: ["storage"],
  nodemailer: ["delivery"],
  fastify: ["http", "app"],
  "fastify/*": ["http", "app"],
  "prom-client": ["http"],
  pino: ["lib"],
  commander: [],
  yaml: ["config"],
  react: ["console"],
  "react-dom/*": ["console"],
  "@mantine/*": ["console"],
  "@tanstack/*": ["console"],
  uplot: ["console"],
  wouter: ["console"],
  "@opentelemetry/*": ["app"],
};

const CHANNELS = [
  ...["alertmanager", "discord", "email", "opsgenie", "pagerduty"],
  ...["slack", "slack-bot", "teams", "terminal", "webhook"],
];

interface Pattern {
  readonly group: readonly string[];
  readonly message: string;
  readonly allowTypeImports?: boolean;
}

const isBesideSrc = (folder: string) => folder === "jobs" || folder === "db";

/** The imports that a folder may not have. */
function forbid(folder: string, { may, because }: Border): Pattern {
  const folders = [...FOLDERS, "jobs", "db"].filter((other) => other !== folder && !may.includes(other));
  // From beside src an import names src; within src it does not.
  const toGlob = (other: string) =>
    isBesideSrc(folder) && !isBesideSrc(other) ? `**/src/${other}/**` : `**/${other}/**`;
  const libraries = Object.keys(LIBRARIES).filter((library) => !LIBRARIES[library]?.includes(folder));
  // A channel measures how long a receiver takes, so delivery may have a clock.
  const clock = STAGES.includes(folder) && folder !== "delivery" ? ["**/lib/clock.ts"] : [];
  const client = folder === "emulator" ? ["**/edge/*.ts", "**/edge/transport/**", "**/edge/account/**"] : [];
  // Types are gone when the page is built.
  const types = folder === "console" ? { allowTypeImports: true } : {};
  return { group: [...folders.map(toGlob), ...client, ...libraries, ...clock], message: because, ...types };
}

function override(files: string, ...patterns: readonly Pattern[]) {
  return { files: [files], rules: { "no-restricted-imports": ["error", { patterns }] } };
}

// Of several overrides of a file the last one counts alone, so those within delivery repeat its border.
const DELIVERY = forbid("delivery", BORDERS["delivery"] as Border);
const borders = [
  ...Object.entries(BORDERS).map(([folder, border]) =>
    override(isBesideSrc(folder) ? `${folder}/**` : `src/${folder}/**`, forbid(folder, border)),
  ),
  override("src/delivery/message/**", DELIVERY, {
    group: ["**/channels/**"],
    message: "message knows no channel.",
  }),
  ...CHANNELS.map((channel) =>
    override(`src/delivery/channels/${channel}/**`, DELIVERY, {
      group: CHANNELS.filter(
        (other) => other !== channel && !(channel === "slack-bot" && other === "slack"),
      ).map((other) => `**/${other}/**`),
      message: "A channel imports nothing of another channel, except slack-bot of slack.",
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
    {
      files: ["test/**", "src/cli/**", "src/main.ts"],
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
