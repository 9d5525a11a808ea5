import { z } from 'zod';
import { documentOf, sinkMembers } from './apply.schema.js';

const NAME = 'must be the name of a variable';

/** Something secret, which the file does not contain. */
const reference = z
  .union([
    z.strictObject({ env: z.string(NAME).min(1).meta({ description: 'Name of an environment variable.' }) }),
    z.strictObject({
      file: z.string().min(1).meta({ description: 'Path of a file, from the folder of this one.' }),
    }),
  ])
  .meta({ description: 'Where the command line reads the secret.', examples: [{ env: 'OPENAI_API_KEY' }] });

const urlOf = (description: string) => z.union([z.string(), reference]).meta({ description });
const WEBHOOK_URL = 'Where events are sent; a reference, if the URL is secret, as those of Slack are.';
const SINK_URL = 'Where rows are sent; a reference, if its query is secret.';

/** JSON Schema of the file for `postern apply`, for editors. */
export function fileSchema(): object {
  const schema = documentOf(
    reference.nullable(),
    urlOf(WEBHOOK_URL),
    z.strictObject({ ...sinkMembers, url: urlOf(SINK_URL), secret: reference.nullable().default(null) }),
  );
  return {
    title: 'postern apply',
    ...z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any', reused: 'inline' }),
  };
}
