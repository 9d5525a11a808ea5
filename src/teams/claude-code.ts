import { z } from 'zod';

/** Of the column in Postgres. */
export const CLAUDE_CODE_COMMENT = 'Settings that Claude Code gets from the gateway; null for none.';

const ABOUT =
  'Settings that Claude Code gets from the gateway when a member of the team has signed in; null for none. Only settings that restrict it: others could run commands on the computers of people.';
const EXAMPLE = { availableModels: ['sonnet', 'haiku'], permissions: { deny: ['WebFetch'] } };
const LIST = 'must be a list of texts of 1 to 500 printable characters';

const texts = z
  .array(z.string(LIST).regex(/^[^\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]{1,500}$/u, LIST), LIST)
  .max(200, 'must not have more than 200 entries');

const about = {
  availableModels: { description: 'The models that people may choose.', example: ['sonnet', 'haiku'] },
  enforceAvailableModels: {
    description: 'Whether these are the only models that Claude Code uses.',
    example: true,
  },
  model: { description: 'The model that a session begins with.', example: 'sonnet' },
  permissions: { description: 'Rules for the tools of Claude Code.', example: { deny: ['WebFetch'] } },
  deny: { description: 'Uses of tools that are denied.', example: ['WebFetch'] },
  ask: { description: 'Uses of tools that a person is asked about.', example: ['Bash(git push:*)'] },
  disableBypassPermissionsMode: {
    description: '`disable`: nobody can switch the rules off.',
    example: 'disable',
  },
};

/** The members are those of Claude Code's settings file. */
const settings = z
  .strictObject(
    {
      availableModels: texts.optional().meta(about.availableModels),
      enforceAvailableModels: z
        .boolean('must be true or false')
        .optional()
        .meta(about.enforceAvailableModels),
      model: z
        .string('must be the name of a model')
        .regex(/^[\x21-\x7e]{1,128}$/, 'must be 1 to 128 visible ASCII characters')
        .optional()
        .meta(about.model),
      permissions: z
        .strictObject(
          {
            deny: texts.optional().meta(about.deny),
            ask: texts.optional().meta(about.ask),
            disableBypassPermissionsMode: z
              .literal('disable', 'must be disable')
              .optional()
              .meta(about.disableBypassPermissionsMode),
          },
          'must be an object with deny, ask or disableBypassPermissionsMode',
        )
        .optional()
        .meta(about.permissions),
    },
    'must be an object with availableModels, enforceAvailableModels, model or permissions; null for none',
  )
  .meta({ id: 'NewClaudeCodeSettings', example: EXAMPLE });

const view = z
  .strictObject({
    availableModels: z.array(z.string()).optional().meta(about.availableModels),
    enforceAvailableModels: z.boolean().optional().meta(about.enforceAvailableModels),
    model: z.string().optional().meta(about.model),
    permissions: z
      .strictObject({
        deny: z.array(z.string()).optional().meta(about.deny),
        ask: z.array(z.string()).optional().meta(about.ask),
        disableBypassPermissionsMode: z
          .literal('disable')
          .optional()
          .meta(about.disableBypassPermissionsMode),
      })
      .optional()
      .meta(about.permissions),
  })
  .meta({ id: 'ClaudeCodeSettings' });
export type ClaudeCodeSettings = z.output<typeof view>;

/** In the order of the schema: jsonb has an order of its own, and a change is found by comparison. */
export function shownClaudeCode(stored: ClaudeCodeSettings): ClaudeCodeSettings {
  return view.parse(stored);
}

/** Member of a view. */
export const claudeCodeView = {
  claude_code: view.nullable().meta({ description: ABOUT, example: EXAMPLE }),
};

/** Member of a new team or of a change. */
export const claudeCodeChange = {
  claude_code: settings.nullable().optional().meta({ description: ABOUT, example: EXAMPLE }),
};
