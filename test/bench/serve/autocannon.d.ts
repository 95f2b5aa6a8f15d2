declare module "autocannon" {
  interface Result {
    readonly latency: { readonly p50: number; readonly p97_5: number };
    readonly non2xx: number;
    readonly errors: number;
    readonly timeouts: number;
    readonly requests: { readonly total: number };
  }
  interface Options {
    readonly url: string;
    readonly method: "POST";
    readonly headers: Readonly<Record<string, string>>;
    readonly body: string;
    readonly connections: number;
    /** Seconds. */
    readonly duration: number;
    readonly timeout: number;
  }
  interface Run extends Promise<Result> {
    stop(): void;
  }
  export default function autocannon(options: Options): Run;
}
