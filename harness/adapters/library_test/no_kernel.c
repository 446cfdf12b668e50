/* A library of another kind. */
int answer(void);
int answer(void) { return 42; }
