import openapiTypes, { astToString, type OpenAPI3 } from 'openapi-typescript';

interface Document {
  paths: Record<string, Record<string, { responses: Record<string, unknown> }>>;
}

/** The types of the admin API for its client. Without error responses: the client throws those as one class. */
export async function clientSchema(text: string): Promise<string> {
  const document = JSON.parse(text) as Document;
  for (const item of Object.values(document.paths))
    for (const { responses } of Object.values(item))
      for (const status of Object.keys(responses)) if (Number(status) >= 400) delete responses[status];
  // What has a default may be left out of a request.
  const types = await openapiTypes(document as unknown as OpenAPI3, { defaultNonNullable: false });
  return `// Made from openapi.json by \`npm run docs\`.\n${astToString(types)}`;
}
