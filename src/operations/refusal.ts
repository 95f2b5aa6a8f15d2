import { ServiceError } from "#lib/errors.ts";

/** One broken rule of a request. `value` is left out where it may be a secret. */
export interface Mistake {
  readonly field: string;
  readonly value?: string;
  /** Follows the name of the field: "must be a list", "is missing". */
  readonly rule: string;
}

export interface RefusalOptions {
  /** Shown to the client: no SQL, no addresses, no text of another error. */
  readonly detail?: string;
  /** Ends the problem's type if the status alone is not enough: `query-too-slow`. */
  readonly slug?: string;
  readonly mistakes?: readonly Mistake[];
  readonly headers?: Readonly<Record<string, string>>;
  /** Only for the log. */
  readonly cause?: unknown;
}

/** An error that a route answers on purpose. */
export class Refusal extends ServiceError {
  override readonly name = "Refusal";
  readonly code = "REFUSED";
  readonly disposition = "give-up";
  readonly statusCode: number;
  readonly detail: string | undefined;
  readonly slug: string | undefined;
  readonly mistakes: readonly Mistake[];
  readonly headers: Readonly<Record<string, string>>;

  constructor(statusCode: number, options: RefusalOptions = {}) {
    super(options.detail ?? `refused with ${statusCode}`, { cause: options.cause });
    this.statusCode = statusCode;
    this.detail = options.detail;
    this.slug = options.slug;
    this.mistakes = options.mistakes ?? [];
    this.headers = options.headers ?? {};
  }
}
