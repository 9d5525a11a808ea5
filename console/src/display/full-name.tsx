import classes from './full-name.module.css';

/** `team / key` in one line. What does not fit is cut from the team: the key tells rows of one team apart. */
export function FullName({ team, name }: { team: string; name: string }) {
  return (
    <span className={classes.name} title={`${team} / ${name}`}>
      <span className={classes.team}>{team}</span>
      <span className={classes.separator}>{' / '}</span>
      <span className={classes.key}>{name}</span>
    </span>
  );
}
