import type { Command } from 'commander';
import type { ModelRules } from '../../../teams/model-rules.js';
import type { Cell } from '../../table.js';

/** Options that teams and keys have alike. */
export interface ModelRuleOptions {
  models?: string;
  streamUsage?: string;
}

export function addModelRuleOptions(command: Command): Command {
  return command
    .option(
      '--models <patterns>',
      "models it may use, separated by commas, for example 'gpt-5*', or all or none",
    )
    .option(
      '--stream-usage <mode>',
      'streams without usage: as_sent, require (reject) or ask (add the option)',
    );
}

/** The options that were given, as fields of the admin API. */
export function modelRulesOf({ models, streamUsage }: ModelRuleOptions): object {
  return {
    ...(models !== undefined && { models: patternsOf(models) }),
    ...(streamUsage !== undefined && { stream_usage: streamUsage }),
  };
}

function patternsOf(models: string): string[] | null {
  if (models === 'all') return null;
  return models === 'none' ? [] : models.split(',').map((pattern) => pattern.trim());
}

/** The rules of a team or key, for people. */
export function modelRuleLines({ models, stream_usage: usage }: ModelRules): (readonly [string, Cell])[] {
  const shown = models === null ? 'all' : models.length === 0 ? 'none' : models.join(',');
  return [
    ['models', shown],
    ['stream usage', usage],
  ];
}
