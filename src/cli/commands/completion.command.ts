import { Argument, Command } from 'commander';
import { action } from '../session.js';

const SHELLS = ['bash', 'zsh', 'fish'] as const;

/** `postern completion` */
export function completionCommand(): Command {
  const completion: Command = new Command('completion')
    .description('print a script that completes commands and options in a shell')
    .addArgument(new Argument('<shell>', 'bash, zsh or fish').choices(SHELLS))
    .addHelpText(
      'after',
      `
The script completes postern and ./postern. Print it again after an upgrade.

Examples:
  echo 'source <(postern completion bash)' >> ~/.bashrc
  postern completion zsh > "\${fpath[1]}/_postern"
  postern completion fish > ~/.config/fish/completions/postern.fish`,
    )
    .action(
      action(async (_, __, shell) => {
        const { completionScript } = await import('../completion.js');
        console.log(completionScript(completion.parent!, shell as (typeof SHELLS)[number]));
      }),
    );
  return completion;
}
