/** A promise to be resolved from elsewhere: tests await what happened instead of sleeping. */
export function createSignal(): { readonly given: Promise<void>; readonly give: () => void } {
  let give: () => void = () => {};
  const given = new Promise<void>((resolve) => {
    give = resolve;
  });
  return { given, give };
}
