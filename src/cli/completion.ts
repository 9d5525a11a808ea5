import type { Command } from 'commander';

/** What can follow a command. */
interface Words {
  /** The names before, such as `keys create`; empty for the program. */
  path: string;
  commands: readonly { name: string; description: string }[];
  options: readonly { name: string; description: string; takesValue: boolean }[];
}

/**
 * A script that completes the names of commands and options. It has the whole tree in it, so that completion starts no
 * process: in a clone that would also install and build first.
 */
export function completionScript(program: Command, shell: 'bash' | 'zsh' | 'fish'): string {
  const tree = wordsOf(program, '');
  return { bash, zsh, fish }[shell](tree);
}

function wordsOf(command: Command, path: string): Words[] {
  const help = command.createHelp();
  const commands = help
    .visibleCommands(command)
    .map((below) => ({ name: below.name(), description: below.description() }));
  const options = [...help.visibleOptions(command), ...globalOptionsOf(command)].map(
    ({ long, short, description, required, optional }) => ({
      name: long ?? short!,
      description,
      takesValue: required || optional,
    }),
  );
  const own = { path, commands, options: unique(options) };
  return [own, ...command.commands.flatMap((below) => wordsOf(below, `${path} ${below.name()}`.trim()))];
}

function globalOptionsOf(command: Command): Command['options'] {
  return command.createHelp().visibleGlobalOptions(command);
}

function unique<T extends { name: string }>(options: readonly T[]): T[] {
  return [...new Map(options.map((option) => [option.name, option])).values()];
}

/** Shell text in single quotes. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

function valueOptions(tree: readonly Words[]): string[] {
  return [
    ...new Set(
      tree.flatMap(({ options }) => options.filter((option) => option.takesValue).map(({ name }) => name)),
    ),
  ];
}

/** Finds the command in the words before the cursor: names of commands, not options and their values. */
function bash(tree: readonly Words[]): string {
  const cases = tree.map(({ path, commands, options }) => {
    const words = [...commands, ...options].map(({ name }) => name).join(' ');
    return `    ${quoted(path)}) words=${quoted(words)} ;;`;
  });
  const paths = tree.map(({ path }) => quoted(path)).join('|');
  return `# bash completion of postern
_postern() {
  local cur=\${COMP_WORDS[COMP_CWORD]} path= next words i
  for ((i = 1; i < COMP_CWORD; i++)); do
    case \${COMP_WORDS[i]} in
    ${valueOptions(tree).join('|')}) ((i++)); continue ;;
    -*) continue ;;
    esac
    next="\${path:+$path }\${COMP_WORDS[i]}"
    case $next in
    ${paths}) path=$next ;;
    esac
  done
  COMPREPLY=()
  # A value of an option may be a file.
  case \${COMP_WORDS[COMP_CWORD-1]} in
  ${valueOptions(tree).join('|')}) return ;;
  esac
  case $path in
${cases.join('\n')}
  esac
  COMPREPLY=($(compgen -W "$words" -- "$cur"))
}
complete -o default -F _postern postern`;
}

function zsh(tree: readonly Words[]): string {
  const describe = ({ name, description }: { name: string; description: string }) =>
    quoted(`${name.replaceAll(':', '\\:')}:${description}`);
  const cases = tree.map(
    ({ path, commands, options }) =>
      `    ${quoted(path)})\n      names=(${[...commands, ...options].map(describe).join(' ')}) ;;`,
  );
  const paths = tree.map(({ path }) => quoted(path)).join('|');
  return `#compdef postern
_postern() {
  local path_= next i
  local -a names
  for ((i = 2; i < CURRENT; i++)); do
    case $words[i] in
    ${valueOptions(tree).join('|')}) ((i++)); continue ;;
    -*) continue ;;
    esac
    next="\${path_:+$path_ }$words[i]"
    case $next in
    ${paths}) path_=$next ;;
    esac
  done
  case $words[CURRENT-1] in
  ${valueOptions(tree).join('|')}) _files; return ;;
  esac
  case $path_ in
${cases.join('\n')}
  esac
  _describe 'postern' names || _files
}
if [ "$funcstack[1]" = "_postern" ]; then _postern "$@"; else compdef _postern postern; fi`;
}

function fish(tree: readonly Words[]): string {
  const line = (path: string, rest: string, description: string) =>
    `complete -c postern -n ${quoted(`__postern_at ${quoted(path)}`)} ${rest} -d ${quoted(description)}`;
  const lines = tree.flatMap(({ path, commands, options }) => [
    ...commands.map(({ name, description }) => line(path, `-f -a ${name}`, description)),
    ...options.map(({ name, description, takesValue }) =>
      line(
        path,
        `${name.startsWith('--') ? `-l ${name.slice(2)}` : `-s ${name.slice(1)}`}${takesValue ? ' -r' : ''}`,
        description,
      ),
    ),
  ]);
  return `# fish completion of postern
function __postern_at
  set -l words (commandline -opc)
  set -e words[1]
  set -l path
  set -l skip 0
  for word in $words
    if test $skip -eq 1
      set skip 0
    else if contains -- $word ${valueOptions(tree).join(' ')}
      set skip 1
    else if not string match -q -- '-*' $word
      if contains -- "$path $word" ${tree.map(({ path }) => quoted(` ${path}`)).join(' ')}
        set path "$path $word"
      end
    end
  end
  test "$path" = (test -n "$argv[1]"; and echo " $argv[1]"; or echo '')
end
${lines.join('\n')}`;
}
