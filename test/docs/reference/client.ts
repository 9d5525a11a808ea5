import openapiTypes, { astToString, type OpenAPI3 } from 'openapi-typescript';

interface Document {
  paths: Record<string, Record<string, { responses: Record<string, unknown> }>>;
}

/** Of what the package exports. */
const DESCRIPTIONS = {
  paths: 'The endpoints of the admin API, by their paths.',
  components: 'The schemas of the admin API.',
  operations: 'The endpoints of the admin API, by the names of their operations.',
};

/** The types of the admin API for its client. Without error responses: the client throws those as one class. */
export async function clientSchema(openapi: string): Promise<string> {
  const document = JSON.parse(openapi) as Document;
  for (const item of Object.values(document.paths))
    for (const { responses } of Object.values(item))
      for (const status of Object.keys(responses)) if (Number(status) >= 400) delete responses[status];
  // What has a default may be left out of a request.
  const types = await openapiTypes(document as unknown as OpenAPI3, { defaultNonNullable: false });
  const text = astToString(types);
  const described = Object.entries(DESCRIPTIONS).reduce(
    (all, [name, description]) => all.replace(`export interface ${name} `, `/** ${description} */\n$&`),
    text,
  );
  return `// Made from openapi.json by \`npm run docs\`.\n${described}`;
}
