declare module "@cdktf/hcl2json" {
  /** The part of the package that a test uses. Its own types are not needed to check the project. */
  export function parse(filename: string, text: string): Promise<unknown>;
}
