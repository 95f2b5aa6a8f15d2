import type { Clock } from "../../../clock.ts";
import { Refusal } from "../../refusal.ts";

/** How long a revoked key may go on reading, as on the stream of alerts. */
const CHECK_EVERY_MS = 15_000;

/**
 * The same parts for as long as `isAllowed` says so, asked at the begin of one now and then: what is sent for an hour is
 * more than one question. While it cannot be looked up, who was let in with a good key stays.
 * @throws {Refusal} in the middle, which ends the connection.
 */
export async function* whileAllowed<Part>(
  parts: AsyncIterable<Part, void, undefined>,
  isAllowed: () => Promise<boolean>,
  clock: Clock,
): AsyncGenerator<Part, void, undefined> {
  let checkedAt = clock();
  for await (const part of parts) {
    const now = clock();
    if (now - checkedAt >= CHECK_EVERY_MS) {
      checkedAt = now;
      if (!(await isAllowed().catch(() => true)))
        throw new Refusal(401, { detail: "The access key is no longer valid." });
    }
    yield part;
  }
}
