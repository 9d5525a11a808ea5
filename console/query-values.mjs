// A part of `npm run types`: writes what the query parameters of the admin API, and units of prices, can be chosen from, which types alone do
// not tell a running page.
import { readFileSync, writeFileSync } from 'node:fs';

const at = (path) => new URL(path, import.meta.url);
const { paths, components } = JSON.parse(readFileSync(at('../openapi.json'), 'utf8'));
const values = {};
for (const { get } of Object.values(paths)) {
  const listed = (get?.parameters ?? []).filter(({ in: place, schema }) => place === 'query' && schema.enum);
  if (listed.length > 0)
    values[get.operationId] = Object.fromEntries(listed.map(({ name, schema }) => [name, schema.enum]));
}
const units = Object.keys(components.schemas.NewPrice.properties.extra.properties);
writeFileSync(
  at('src/api/query-values.ts'),
  `// Made from openapi.json by \`npm run types\`.
/** The values of query parameters, by operation and parameter. */
export const QUERY_VALUES = ${JSON.stringify(values, null, 2)} as const;

/** Units that have a price of their own. */
export const PRICE_UNITS = ${JSON.stringify(units)} as const satisfies readonly string[];
`,
);
