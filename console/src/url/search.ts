/** The members of a page's search: text, or one of the values of a list. */
export type Search<Text extends string, Lists extends Readonly<Record<string, readonly string[]>>> = {
  [Name in Text]?: string;
} & { [Name in keyof Lists]?: Lists[Name][number] };

/**
 * What a page reads from its URL. A value that is not in its list counts as absent.
 *
 * @param texts names of members with any text
 * @param lists the values of the others, by name
 * @returns for `validateSearch` of a route
 */
export function searchParams<
  const Text extends string,
  const Lists extends Readonly<Record<string, readonly string[]>>,
>(texts: readonly Text[], lists: Lists) {
  const names = [...texts, ...Object.keys(lists)];
  return (search: Record<string, unknown>): Search<Text, Lists> => {
    const isValid = (name: string, value: unknown) =>
      typeof value === 'string' && (lists[name]?.includes(value) ?? true);
    // The router keeps what a route does not name, and hands it to the route as well: only `undefined` takes it away.
    return Object.fromEntries(
      names.map((name) => [name, isValid(name, search[name]) ? search[name] : undefined]),
    ) as Search<Text, Lists>;
  };
}
