/** Address of an operation: method, path with `:names`, and the members of the input that are in the query. */
export interface OperationAddress {
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  readonly path: string;
  readonly query: readonly string[];
}

interface FilledAddress {
  readonly path: string;
  readonly query: Readonly<Record<string, unknown>>;
  /** Null if no member is in the body. */
  readonly body: Readonly<Record<string, unknown>> | null;
}

/** Puts the members of an input where the address says. Members without a value are left out. */
export function fillAddress({ path, query }: OperationAddress, input: object): FilledAddress {
  const left = new Map(Object.entries<unknown>({ ...input }).filter(([, value]) => value !== undefined));
  const take = (member: string) => {
    const value = left.get(member);
    left.delete(member);
    return value;
  };
  const filled = path.replaceAll(/:(\w+)/g, (_, member: string) => encodeURIComponent(String(take(member))));
  const inQuery = query.filter((member) => left.has(member)).map((member) => [member, take(member)] as const);
  return {
    path: filled,
    query: Object.fromEntries(inQuery),
    body: left.size === 0 ? null : Object.fromEntries(left),
  };
}
