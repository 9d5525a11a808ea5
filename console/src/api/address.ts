/** The address of a download, whose rows the gateway sends itself. Parameters that are undefined are left out. */
export function addressOf(path: string, query: Readonly<Record<string, unknown>>): string {
  const given = Object.entries(query).flatMap(([name, value]) =>
    value === undefined ? [] : [[name, String(value)]],
  );
  return `${path}?${new URLSearchParams(given).toString()}`;
}
