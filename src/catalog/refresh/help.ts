/** The command's text in `gatehouse help`, separate so that help does not load the command. */
export const CATALOG_HELP = `gatehouse catalog refresh
    fetches model facts from the registry (GATEHOUSE_CATALOG_URL) and the model lists of the configured providers
gatehouse catalog show
    prints how many models are known, and the date of the facts`;
