import { z } from 'zod';
import { documentOf } from './apply.schema.js';

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

const URL_ABOUT = 'Where events are sent; a reference, if the URL is secret, as those of Slack are.';

/** JSON Schema of the file for `postern apply`, for editors. */
export function fileSchema(): object {
  const schema = documentOf(
    reference.nullable(),
    z.union([z.string(), reference]).meta({ description: URL_ABOUT }),
  );
  return {
    title: 'postern apply',
    ...z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any', reused: 'inline' }),
  };
}
