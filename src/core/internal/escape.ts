/** Case ids are any strings, so the separator of the names made of them is escaped: two cases never share a name. */
export const escaped = (id: string): string => (/[%/]/.test(id) ? id.replaceAll("%", "%25").replaceAll("/", "%2F") : id)
