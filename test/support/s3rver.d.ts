declare module "@20minutes/s3rver" {
  /** The part of s3rver that the tests use; the package has no types. */
  export default class S3rver {
    constructor(options: {
      readonly silent: boolean;
      readonly address: string;
      readonly port: number;
      readonly vhostBuckets: boolean;
      readonly directory: string;
      readonly configureBuckets: readonly { readonly name: string; readonly configs: readonly string[] }[];
    });
    readonly store: { existsObject(bucket: string, key: string): Promise<boolean> };
    run(): Promise<{ readonly port: number }>;
    close(): Promise<void>;
  }
}
