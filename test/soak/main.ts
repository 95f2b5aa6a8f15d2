import { inspect } from "node:util";
import { Command, InvalidArgumentError, Option } from "commander";
import { runRandomTests } from "./random-tests.ts";
import { isPassed, reportSoak } from "./report.ts";
import { runSoak } from "./run-soak.ts";
import { REDIS_FORMS, type RedisForm } from "./soak-machines.ts";

const EXAMPLES = `
Examples:
  npm run soak -- --minutes 30 --seed 7
  npm run soak -- --machines cluster --replicas 3 --no-random-tests
  npm run -s soak -- --minutes 2 --replicas 5 --logs --no-random-tests

Runs every random test of the gate with the seed, which the gate itself does with one fixed seed. Then the soak itself.
Starts the service's processes, Postgres, Redis where there is a server on PATH, the platform's emulator and a webhook
receiver, each behind a network that can fail; harms them at random; then waits until everything is complete. The
platform lies as well: the second table counts how often, in how many answers and about how many events.
Survived means that ingest went on after the fault. Exit code 1 when a random test failed, a fault was not survived or
a check is not met.`;

function positive(text: string): number {
  if (!/^\d{1,6}(\.\d+)?$/.test(text) || Number(text) === 0)
    throw new InvalidArgumentError("must be more than 0.");
  return Number(text);
}

function wholeNumber(text: string): number {
  if (!/^\d{1,9}$/.test(text)) throw new InvalidArgumentError("must be a whole number.");
  return Number(text);
}

interface Flags {
  readonly minutes: number;
  readonly calmMinutes: number;
  readonly seed: number;
  readonly replicas: number;
  readonly historyHours: number;
  readonly eventsPerSecond: number;
  readonly machines?: RedisForm;
  readonly logs?: true;
  readonly randomTests: boolean;
}

await new Command("soak")
  .description(
    "Runs the whole service under random faults and checks that nothing was lost, doubled or left unsaid.",
  )
  .option("--minutes <number>", "how long faults are inflicted", positive, 30)
  .option("--calm-minutes <number>", "how long it may then take to become complete", positive, 20)
  .option("--seed <number>", "what is inflicted follows from this", wholeNumber, Date.now() % 1_000_000)
  .option("--replicas <number>", "processes of the service", wholeNumber, 2)
  // Hours without events would wait an hour for their second look, longer than the soak does.
  .option("--history-hours <number>", "what the platform has to show at the start", positive, 73)
  .option("--events-per-second <number>", "over both zones", positive, 0.5)
  .addOption(
    new Option(
      "--machines <redis>",
      "a standby of Postgres, Redis by Sentinels or as a cluster, replicas with roles of their own, and the loss of each",
    ).choices(REDIS_FORMS),
  )
  .option("--logs", "print the end of what the replicas wrote")
  .option("--no-random-tests", "leave out the random tests")
  .addHelpText("after", EXAMPLES)
  .action(async ({ logs, randomTests, machines, ...options }: Flags) => {
    const onProgress = (line: string) => void process.stderr.write(`${line}\n`);
    const stop = new AbortController();
    for (const signal of ["SIGINT", "SIGTERM"] as const)
      process.once(signal, () => stop.abort(new Error(`ended by ${signal}`)));
    const drawn = !randomTests || (await runRandomTests({ ...options, onProgress, signal: stop.signal }));
    const result = await runSoak({ ...options, machines: machines ?? null, onProgress, signal: stop.signal });
    if (logs) process.stderr.write(`${result.logs}\n`);
    process.stdout.write(reportSoak(result));
    if (!drawn) process.stdout.write(`random tests FAILED with TEST_SEED=${options.seed}\n`);
    // After sockets whose other end was frozen, Node waits for one of their requests for ever when it ends by itself.
    process.exit(drawn && isPassed(result) ? 0 : 1);
  })
  .parseAsync()
  .catch((thrown: unknown) => {
    process.stderr.write(`soak: ${inspect(thrown)}\n`);
    process.exit(1);
  });
