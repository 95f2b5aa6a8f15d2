/** Returns the address of a bucket's prefix. */
export function describeBucket({ name, prefix }: { readonly name: string; readonly prefix: string }): string {
  return `s3://${[name, prefix].filter(Boolean).join("/")}`;
}
