/** The sign of the project: a gate. */
export function Mark({ size = 24 }: { size?: number }) {
  return (
    <svg class="mark" width={size} height={size} viewBox="0 0 32 32" aria-hidden="true">
      <rect width="32" height="32" rx="7" />
      <path d="M7 25V13a9 9 0 0 1 18 0v12h-5V14a4 4 0 0 0-8 0v11z" />
    </svg>
  );
}
